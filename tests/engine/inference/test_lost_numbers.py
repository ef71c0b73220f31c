"""A model whose numbers are lost (NaN) for some prompts: they end by name, others do not notice."""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.policies.unmasking import Confidence
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import LOST, Request, sampling
from engine.models.families import parse
from engine.models.loading.load import random_weights
from engine.models.model import Model
from tests.engine.inference.small import TINY, config

SPOILT = 7  # the token whose embedding is none


WISHES = [{}, {"temperature": 1.0, "seed": 5}, {"logprobs": 2}]


@pytest.fixture(scope="module", params=[False, True], ids=["compiled", "plain"])
def model(request):
    architecture = parse(TINY | {"tie_word_embeddings": False}, "tiny")
    weights = random_weights(architecture, seed=3)
    weights["model.embed_tokens.weight"][SPOILT] = np.nan
    return Model(architecture, weights, plain=request.param)


def answers(model, prompts, masks=False, **fields):
    """Each third prompt with another wish; few at once, in few pages. `masks`: of blocks."""
    chosen = config(**{"pages": 24, "max_running": 3} | fields)
    held = Engine(chosen, executor_for(chosen, model, "tiny"), VirtualClock(), lambda event: None)
    wishes = WISHES[: 2 if masks else 3]  # of log-probabilities blocks have none to choose from
    asked = [
        Request(np.array(p, np.int32), sampling(max_tokens=12, **wishes[p[-1] % len(wishes)]))
        for p in prompts
    ]
    for one in asked:
        one.canvas = Canvas(2, Confidence(tokens=4)) if masks else None
        held.add(one)
    while held.step():
        pass
    return asked


@pytest.mark.parametrize("fields", [{}, {"speculation": {"kind": "ngram", "tokens": 3}}], ids=str)
def test_who_is_lost_ends_by_name_and_leaves_nothing_to_who_has_the_pages_next(model, fields):
    sound = [[9, 4, 8, 4, 8, 4, n] for n in range(10, 19)]
    alone = [one.generated.tolist() for one in answers(model, sound, **fields)]
    mixed = [p for n in range(9) for p in ([SPOILT] * (20 + n), [3, SPOILT, 30 + n], sound[n])]
    found = answers(model, mixed, **fields)
    assert [one.fault for one in found] == [LOST, LOST, ""] * 9
    assert all(one.state == "aborted" for one in found if one.fault)
    assert [one.generated.tolist() for one in found if not one.fault] == alone
    assert all(len(answer) == 12 for answer in alone)


def test_blocks_of_masks_that_are_lost_end_by_name_too(model):
    sound = [[9, 4, 8, n] for n in range(10, 19)]
    alone = [one.generated.tolist() for one in answers(model, sound, masks=True)]
    mixed = [p for n in range(9) for p in ([3, SPOILT, 30 + n], sound[n])]
    found = answers(model, mixed, masks=True)
    assert [one.fault for one in found] == [LOST, ""] * 9
    assert [one.generated.tolist() for one in found if not one.fault] == alone
