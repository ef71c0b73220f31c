"""Gradients taken in pieces of the sequence equal the whole's; bytes counted are those there."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.run import Run
from engine.models.reference import dense
from engine.training.streamed import problem
from engine.training.streamed.attention import Scores, attend
from engine.training.streamed.config import StreamedConfig
from engine.training.streamed.memory_fit import longest, peak, watched
from engine.training.streamed.methods.autograd import Checkpointing, Plain
from engine.training.streamed.methods.streamed import Streamed
from engine.training.streamed.model import Model, pieces
from engine.training.streamed.objectives import Dpo, Grpo, Sft
from engine.training.streamed.run import ALIVE, SECONDS, run
from tests.engine.models import small

OBJECTIVES = (Sft(), Dpo(), Grpo())
SMALL = StreamedConfig(
    tokens=48, hidden=32, heads=4, kv_heads=2, width=48, layers=2, vocabulary=61, tile=16,
)  # fmt: skip


def leaves(config):
    return {name: w.requires_grad_() for name, w in small.weights(config).items()}


def gradients(weights, work):
    """(loss, gradient by name) of `work`; weights that had no part in it are left out."""
    for weight in weights.values():
        weight.grad = None
    loss = work()
    return loss, {name: w.grad for name, w in weights.items() if w.grad is not None}


def furthest(found, true):
    assert set(found) >= {name for name, grad in true.items() if grad.abs().max() > 0}
    return max(
        ((found[name] - grad).abs().max() / grad.abs().max().clamp_min(1e-12)).item()
        for name, grad in true.items()
        if name in found
    )


@pytest.mark.parametrize("name", sorted(set(small.FAMILIES) - set(small.USUAL)))
def test_what_it_does_not_know_is_refused_in_one_line(name):
    config = small.config(name)
    with pytest.raises(BadInput, match="streamed training does not know it"):
        Streamed().gradients(
            Model(config, leaves(config), 8), problem.batch(config, 2, 37, 0), Sft()
        )


@pytest.mark.parametrize("name", small.USUAL)
def test_gradients_equal_those_of_the_dense_forward(name):
    config = small.config(name)
    weights, batch = leaves(config), problem.batch(config, 2, 37, 0)
    for objective in OBJECTIVES:
        loss, true = gradients(
            weights, lambda how=objective: problem.truth(config, weights, batch, how)
        )
        for method in (Plain(), Checkpointing(), Streamed(partitions=5, head_tokens=7)):
            said, found = gradients(
                weights,
                lambda m=method, how=objective: m.gradients(Model(config, weights, 8), batch, how),
            )
            assert said == pytest.approx(loss, rel=1e-5, abs=1e-6)
            assert furthest(found, true) <= 1e-5, (method.kind, objective.kind)


@settings(max_examples=10, deadline=None)
@given(
    length=st.integers(2, 70),
    partitions=st.integers(1, 90),
    head_tokens=st.integers(1, 90),
    tile=st.integers(8, 40),
    kind=st.sampled_from(OBJECTIVES),
)
def test_any_length_in_any_number_of_pieces(length, partitions, head_tokens, tile, kind):
    config = small.config("qwen3")
    weights, batch = leaves(config), problem.batch(config, 2, length, 1)
    if not batch.counts_BT.sum():
        return
    _, true = gradients(weights, lambda: problem.truth(config, weights, batch, kind))
    method = Streamed(partitions=partitions, head_tokens=head_tokens)
    _, found = gradients(
        weights, lambda: method.gradients(Model(config, weights, tile), batch, kind)
    )
    assert furthest(found, true) <= 1e-5


def test_keys_and_values_without_a_gradient_are_wrong():
    config = small.config("llama-3")
    weights, batch = leaves(config), problem.batch(config, 2, 37, 0)
    _, true = gradients(weights, lambda: problem.truth(config, weights, batch, Sft()))
    method = Streamed(detached=True)
    _, found = gradients(weights, lambda: method.gradients(Model(config, weights, 8), batch, Sft()))
    same = {name: grad for name, grad in found.items() if "down_proj" in name or "lm_" in name}
    assert furthest(same, {name: true[name] for name in same}) > 1e-3
    assert not any("k_proj" in name or "v_proj" in name for name in found)


@pytest.mark.parametrize(("window", "cap"), [(0, 0.0), (5, 0.0), (0, 2.0), (11, 3.0)])
@pytest.mark.parametrize(("queries", "keys"), [(19, 19), (7, 19), (1, 19), (19, 50)])
def test_tiled_attention_and_its_gradients(queries, keys, window, cap):
    generator = torch.Generator().manual_seed(queries + keys)
    q, k, v = (
        torch.randn(2, n, heads, size, generator=generator, dtype=torch.float64).requires_grad_()
        for n, heads, size in ((queries, 6, 8), (keys, 2, 8), (keys, 2, 5))
    )
    scores = torch.einsum("bthd,bshd->bhts", q, k.repeat_interleave(3, 2)) * 0.3
    scores = torch.tanh(scores / cap) * cap if cap else scores
    back = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    hidden = (back < 0) | (back >= (window or keys))
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    plain = torch.einsum("bhts,bshe->bthe", weights, v.repeat_interleave(3, 2))
    tiled = attend(q, k, v, Scores(0.3, window, cap, 8))
    torch.testing.assert_close(tiled, plain)
    slope = torch.randn(plain.shape, generator=generator, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad(tiled, (q, k, v), slope),
        torch.autograd.grad(plain, (q, k, v), slope),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_pieces_are_all_of_it_and_the_last_is_the_largest():
    for length in (1, 2, 7, 64, 100):
        for count in (1, 2, 3, 7, 200):
            found = pieces(length, count)
            assert [t for piece in found for t in piece] == list(range(length))
            assert max(map(len, found)) == len(found[-1]) <= min(map(len, found)) + 1


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.kind)
@pytest.mark.parametrize("kind", ["plain", "checkpointing", "streamed"])
def test_bytes_counted_on_shapes_are_those_of_a_real_step(kind, objective):
    config = update(SMALL, {"method": kind}).model()
    method = {"plain": Plain(), "checkpointing": Checkpointing()}.get(
        kind, Streamed(partitions=3, head_tokens=20)
    )
    weights, batch = problem.weights(config, 0), problem.batch(config, 2, 100, 0)
    _, real = watched(method, Model(config, weights, 16), batch, objective)
    counted = peak(config, method, objective, 2, 100, 16)
    assert real == pytest.approx(counted, rel=0.01)


def test_bytes_are_a_straight_line_and_the_longest_lies_on_it():
    config = SMALL.model()
    method = Streamed(partitions=4, head_tokens=64)
    sizes = [peak(config, method, Sft(), 1, length, 16) for length in (4096, 8192, 16384)]
    assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=1e-3)
    found = longest(config, method, Sft(), 1, 16, float(sizes[1]))
    assert found == pytest.approx(8192, rel=1 / 64)
    assert longest(config, method, Sft(), 1, 16, 10.0) == 0


def test_a_run_tells_memory_under_each_way():
    log = Run.execute(run, SMALL).log
    lanes = ["plain", "checkpointing", "streamed"]
    assert log[0].facts["lanes"] == lanes
    for lane in lanes:
        assert {s.name for s in log.of(Span) if s.lane == lane} == {"forward", "head", "backward"}
        levels = {e.name: e.value for e in log.of(Level) if e.lane == lane}
        assert levels["error"] <= 1e-5
        alive = [e.value for e in log.of(Level) if (e.lane, e.name) == (lane, ALIVE)]
        assert 0.8 * levels["peak bytes"] <= max(alive) <= levels["peak bytes"]


def test_what_is_not_watched_is_timed_alone():
    log = Run.execute(run, update(SMALL, {"watch": False, "exact": False, "rounds": 2})).log
    found = [(e.lane, e.name) for e in log.of(Level)]
    assert set(found) == {(lane, SECONDS) for lane in ("plain", "checkpointing", "streamed")}
    assert len(found) == 6 and not list(log.of(Span))


def test_what_does_not_fit_is_said():
    with pytest.raises(BadInput, match="DPO"):
        update(SMALL, {"objective": "dpo", "batch": 3})
    with pytest.raises(BadInput, match="kv_heads"):
        update(SMALL, {"kv_heads": 3})


def test_losses_are_what_their_papers_say():
    config = small.config("llama-3")
    weights, batch = leaves(config), problem.batch(config, 2, 9, 3)
    logits = dense(config, weights, batch.ids_BT)
    lp = logits.log_softmax(-1).gather(-1, batch.target_BT[..., None])[..., 0]
    counts = batch.counts_BT.bool()
    assert Sft().loss(lp, batch, slice(None)).item() == pytest.approx(
        F.cross_entropy(logits[counts], batch.target_BT[counts]).item(), rel=1e-5
    )
    gained = [(lp - batch.reference_BT)[row][counts[row]].sum() for row in (0, 1)]
    assert Dpo(beta=0.3).loss(lp, batch, slice(None)).item() == pytest.approx(
        -torch.sigmoid(0.3 * (gained[0] - gained[1])).log().item(), rel=1e-4
    )
    total = 0.0
    for row, gain in enumerate(batch.advantage_B.tolist()):
        for here in counts[row].nonzero()[:, 0].tolist():
            ratio = (lp - batch.old_BT)[row, here].exp().item()
            far = (batch.reference_BT - lp)[row, here].item()
            worth = min(ratio * gain, min(max(ratio, 0.8), 1.2) * gain)
            penalty = 0.04 * (torch.tensor(far).exp().item() - far - 1)
            total -= (worth - penalty) / counts[row].sum().item() / 2
    assert Grpo().loss(lp, batch, slice(None)).item() == pytest.approx(total, rel=1e-4)


def test_bytes_alive_are_told_of_the_step_alone():
    log = Run.execute(run, SMALL).log
    told = [level.value for level in log.of(Level) if level.name == ALIVE]
    assert told and min(told) >= 0, "weights and gradients are no activations"
