"""Every way to split training, and every pair of ways, in float64: twenty steps of one process."""

from itertools import combinations
from typing import Any

import pytest

from engine.core.config import kinds
from engine.training.parallel.sharding_config import PipelineSchedule
from engine.training.parallel.zero.zero import Zero
from tests.engine.training.parallel.made import launched
from tests.engine.training.parallel.rank_main_float64 import work

STEPS, CLOSE = 20, 1e-10
Way = dict[str, Any]
TENSOR: dict[str, Way] = {
    "tensor": {"mesh.tensor": 2},
    "tensor, norms split": {"mesh.tensor": 2, "sequence_parallel": True},
}
CONTEXT: dict[str, Way] = {
    "ring": {"mesh.context": 2},
    "all-to-all": {"mesh.context": 2, "attention": "all_to_all"},
    "token ring": {"mesh.context": 2, "attention": "token_ring"},
}
DATA: dict[str, Way] = {
    f"zero {kind}": {"mesh.data": 2, "zero": kind} for kind in sorted(kinds(Zero))
}
PIPELINE: dict[str, Way] = {
    kind: {"mesh.pipeline": 2, "microbatches": 2, "schedule": kind, "model.layers": 4}
    for kind in sorted(kinds(PipelineSchedule))
}
ALONE = TENSOR | CONTEXT | DATA | PIPELINE


def together(one: Way, other: Way) -> bool:
    """Whether the two do not need the same: a stage's weights stay whole in a pipeline."""
    return "mesh.pipeline" not in other or one.get("zero", "nothing") in ("nothing", "optimizer")


PAIRS = {
    f"{a}, {b}": one | other
    for ways, others in combinations((TENSOR, CONTEXT, DATA, PIPELINE), 2)
    for a, one in ways.items()
    for b, other in others.items()
    if together(one, other)
}


@pytest.fixture(scope="module")
def alone():
    return launched(2, twenty(ALONE), work)


@pytest.fixture(scope="module")
def in_pairs():
    return launched(4, twenty(PAIRS), work)


def twenty(ways: dict[str, Way]) -> dict[str, Way]:
    return {name: way | {"steps": STEPS} for name, way in ways.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_each_way_alone(alone, name):
    assert worst(alone, name) <= CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_every_pair(in_pairs, name):
    assert worst(in_pairs, name) <= CLOSE


def worst(launched_ranks, name):
    """Of the losses of all steps, the last step's gradients and the weights after it."""
    return max(launched_ranks.errors(name).values())
