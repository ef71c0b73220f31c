"""What the model makes of prompts: the reference's log-probabilities, however scheduled."""

import numpy as np
import pytest
import torch

from engine.core.events import Branch
from engine.inference.executors.tensors.prompt_rows import _likeliest
from engine.inference.executors.tensors.sampler import top
from engine.models.reference import dense
from tests.engine.inference.small import TINY, real_engine, request, serve, tiny_model

VOCAB = TINY["vocab_size"]


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def job(count=6):
    """Prompts of which some are asked about; two are the same but for that."""
    made = [request(9 + 5 * draw, draw, VOCAB, max_tokens=6) for draw in range(count)]
    made += [request(9 + 5 * draw, draw, VOCAB, max_tokens=6, n=1 + draw % 2) for draw in (1, 2)]
    for one, tops in zip(made, (-1, 0, -1, 2, 5, -1, 3, 1), strict=True):
        one.prompt_tops = tops
    return made


@pytest.mark.parametrize(
    "fields",
    [
        {"pages": 400, "step_tokens": 512},
        {"pages": 400, "step_tokens": 7},
        {"pages": 10, "step_tokens": 27, "host_pages": 64, "preemption": "swap"},
        {"pages": 10, "step_tokens": 27},
    ],
    ids=str,
)
def test_they_are_the_reference_s(model, fields):
    held, events = real_engine(model, **fields)
    requests = job()
    serve(held, requests)
    if fields["pages"] < 20:
        assert any(isinstance(e, Branch) and e.state in ("preempted", "swapped") for e in events)
    for one in requests:
        if one.prompt_tops < 0:
            assert one.prompt_scores is None
            continue
        scores = one.prompt_scores
        assert scores.ranks_N.astype(bool).tolist() == [False] + [True] * (len(one.prompt) - 1)
        tokens = torch.from_numpy(one.prompt.astype(np.int64))[None]
        right = dense(model.config, model.weights, tokens)[0].log_softmax(-1).numpy()
        for position in range(1, len(one.prompt)):
            row_V, token = right[position - 1], one.prompt[position]
            assert scores.logprobs_N[position] == pytest.approx(row_V[token], abs=1e-4)
            assert abs(scores.ranks_N[position] - 1 - (row_V > row_V[token]).sum()) <= 1
            best = np.sort(row_V)[::-1][: one.prompt_tops]
            np.testing.assert_allclose(scores.values_NK[position], best, atol=1e-4)
            likeliest = row_V[scores.tokens_NK[position]]
            np.testing.assert_allclose(likeliest, best, atol=1e-4)


def test_equals_and_what_is_no_number_are_ordered_as_one_row_at_a_time():
    draws = np.random.default_rng(3)
    logits_NV = draws.integers(0, 9, (40, 31)).astype(np.float32)  # many equal ones
    logits_NV[7] = np.nan
    tokens_NK, values_NK = _likeliest(logits_NV, 6)
    for n, row_V in enumerate(logits_NV):
        right = top(row_V, float(row_V.max()), 6)
        assert tokens_NK[n].tolist() == [token for token, _ in right] + [-1] * (6 - len(right))
        assert values_NK[n, : len(right)].tolist() == [value for _, value in right]


def test_whoever_asks_changes_nobody_s_answer(model):
    plain = job()
    for one in plain:
        one.prompt_tops = -1
    wish = {"pages": 400, "step_tokens": 11}
    assert serve(real_engine(model, **wish)[0], job()) == serve(
        real_engine(model, **wish)[0], plain
    )
