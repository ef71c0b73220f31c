"""Local linear attention: its limits, its solver, its memory, and the tasks it is compared on."""

import pytest
import torch

from engine.kernels.local_linear_attention import reference, rows_cpu
from engine.kernels.local_linear_attention.allocated import peak_bytes
from engine.kernels.local_linear_attention.blocks_cpu import local_linear_attention
from engine.kernels.local_linear_attention.cases import made
from engine.kernels.local_linear_attention.conjugate import solve
from engine.kernels.local_linear_attention.regression import fading, least_squares, softmax, tasks
from engine.kernels.local_linear_attention.tiles import Solver


def problem(ridge: float = 0.5, time: int = 50, width: int = 8):
    return made(1, 2, time, width, width, 0.35, ridge, 0, torch.float32)


def wide(given):
    return {k: v.double() if torch.is_tensor(v) else v for k, v in given.items()}


def test_the_reference_is_the_intercept_of_the_regression_it_names():
    given = wide(problem(time=20))
    q, k, v = (given[n][0, 0] for n in ("q_BHTD", "k_BHTD", "v_BHTE"))
    found = reference.local_linear_attention(**given)[0, 0]
    t = 13
    p = (given["scale"] * k[: t + 1] @ q[t]).softmax(0)
    x = torch.cat([torch.ones(t + 1, 1, dtype=torch.float64), k[: t + 1] - q[t]], 1)
    penalty = torch.eye(9, dtype=torch.float64) * given["ridge"]
    penalty[0, 0] = 0.0
    fitted = torch.linalg.solve(x.T @ (p[:, None] * x) + penalty, x.T @ (p[:, None] * v[: t + 1]))
    assert torch.allclose(found[t], fitted[0], atol=1e-10)


def test_much_ridge_is_softmax_attention():
    given = problem(ridge=1e8)
    q, k, v = (given[n] for n in ("q_BHTD", "k_BHTD", "v_BHTE"))
    truth = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, scale=given["scale"]
    )
    assert torch.allclose(local_linear_attention(**given), truth, atol=1e-5)


def test_a_linear_target_is_met_exactly_without_ridge():
    given = wide(problem(ridge=1e-9, time=60))
    given["v_BHTE"] = given["k_BHTD"] @ torch.randn(8, 8, dtype=torch.float64) + 1.0
    found = reference.local_linear_attention(**given)
    line = torch.linalg.lstsq(given["k_BHTD"][0, 0], given["v_BHTE"][0, 0] - 1.0).solution
    assert torch.allclose(found[0, 0, 30:], given["q_BHTD"][0, 0, 30:] @ line + 1.0, atol=1e-4)


@pytest.mark.parametrize("queries", [8, 17, 64])
def test_any_tile_of_queries_gives_the_same(queries):
    given = problem()
    truth = reference.local_linear_attention(**wide(given))
    found = local_linear_attention(**given, queries=queries)
    assert float((found - truth).abs().max() / truth.abs().max()) < 1e-5


@pytest.mark.parametrize("time,width", [(1, 4), (31, 8), (33, 20), (100, 48)])
def test_the_compiled_one_gives_the_same_at_any_size(time, width):
    given = problem(time=time, width=width)
    truth = reference.local_linear_attention(**wide(given))
    found = rows_cpu.local_linear_attention(**given)
    assert float((found - truth).abs().max() / truth.abs().max()) < 1e-5


def test_the_compiled_one_takes_no_tokens_and_much_ridge():
    none = rows_cpu.local_linear_attention(**problem(time=0))
    assert none.shape == (1, 2, 0, 8)
    given = problem(ridge=1e8)
    assert torch.allclose(
        rows_cpu.local_linear_attention(**given), local_linear_attention(**given), atol=1e-5
    )


def test_a_later_token_changes_nothing_before_it():
    given = problem()
    before = local_linear_attention(**given, queries=10)
    given["k_BHTD"][:, :, 30:] += 1.0
    after = local_linear_attention(**given, queries=10)
    assert torch.equal(before[:, :, :30], after[:, :, :30])
    assert not torch.allclose(before[:, :, 30:], after[:, :, 30:])


def test_too_few_steps_are_seen_in_the_result():
    given = problem(ridge=0.01)
    truth = reference.local_linear_attention(**wide(given))
    found = local_linear_attention(**given, solver=Solver(iterations=1))
    assert float((found - truth).abs().max() / truth.abs().max()) > 1e-2


def test_conjugate_gradients_end_in_as_many_steps_as_there_are_dimensions():
    draw = torch.Generator().manual_seed(0)
    root = torch.randn(5, 12, 12, generator=draw, dtype=torch.float64)
    a = root @ root.mT + torch.eye(12)
    b = torch.randn(5, 12, generator=draw, dtype=torch.float64)
    noted = []
    x = solve(lambda x: (a @ x.unsqueeze(-1)).squeeze(-1), b, 60, 1e-10, noted.append)
    assert torch.allclose((a @ x.unsqueeze(-1)).squeeze(-1), b, atol=1e-8)
    assert len(noted) <= 20


def test_nothing_to_solve_is_zero_and_no_step():
    assert torch.equal(solve(lambda x: x, torch.zeros(3, 4)), torch.zeros(3, 4))


def test_alive_bytes_count_what_lives_at_once():
    x = torch.zeros(1000)

    def chain() -> torch.Tensor:
        y = x
        for _ in range(5):
            y = y + 1
        return y

    assert peak_bytes(chain, [x]) == 8000
    assert peak_bytes(lambda: [x + i for i in range(5)], [x]) == 20000


def test_tasks_ask_for_the_next_key_and_differ_by_seed():
    made_tasks = tasks(3, 40, 6, 4, 0.5, 0.0, 0)
    assert torch.equal(made_tasks.q_NTD[:, :-1], made_tasks.k_NTD[:, 1:])
    assert torch.equal(made_tasks.truth_NTD[:, :-1], made_tasks.v_NTD[:, 1:])
    assert not torch.equal(made_tasks.k_NTD, tasks(3, 40, 6, 4, 0.5, 0.0, 1).k_NTD)


def test_on_one_lasting_linear_target_least_squares_wins_and_softmax_does_not():
    given = tasks(4, 120, 6, 1, 0.5, 0.05, 0)
    errors = {
        name: float(given.errors(call(given.q_NTD, given.k_NTD, given.v_NTD)).mean())
        for name, call in (("global", least_squares(1e-3)), ("softmax", softmax(16.0)))
    }
    assert errors["global"] < errors["softmax"] / 2


def test_least_squares_that_forgets_nothing_is_that_of_all_pairs_and_forgetting_helps():
    lasting, changing = (tasks(3, 60, 5, regimes, 0.5, 0.05, 0) for regimes in (1, 4))
    given = (lasting.q_NTD, lasting.k_NTD, lasting.v_NTD)
    assert torch.allclose(fading(0.1, 1.0)(*given), least_squares(0.1)(*given), atol=1e-4)
    given = (changing.q_NTD, changing.k_NTD, changing.v_NTD)
    errors = [
        float(changing.errors(call(*given)).mean())
        for call in (fading(0.1, 0.8), least_squares(0.1))
    ]
    assert errors[0] < errors[1]
