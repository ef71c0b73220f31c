"""Two ways to split at once, on four ranks, and three on eight: still one process's training."""

import pytest

from engine.core.events import Level, Move, Span
from engine.core.run import Run
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.run import ERROR, run
from tests.engine.training.parallel.made import EXACT, launched

TENSOR_DATA = {"mesh.tensor": 2, "mesh.data": 2}
TENSOR_CONTEXT = {"mesh.tensor": 2, "mesh.context": 2}
DATA_CONTEXT = {"mesh.data": 2, "mesh.context": 2}
RIGHT = {
    "matrices in four": {"mesh.tensor": 4, "sequence": True},
    "matrices and batch": {**TENSOR_DATA, "sequence": True},
    "matrices and sequences, ring": {**TENSOR_CONTEXT, "sequence": True},
    "matrices and sequences, heads dealt": {**TENSOR_CONTEXT, "attention": "all_to_all"},
    "batch and sequences": {**DATA_CONTEXT, "steps": 2},
    "batch and sequences, token ring": {
        **DATA_CONTEXT,
        "attention": "token_ring",
        "layout": "striped",
    },
    "ZeRO-1 and matrices": {**TENSOR_DATA, "zero": "optimizer", "steps": 2},
    "ZeRO-3 and matrices": {**TENSOR_DATA, "zero": "weights", "steps": 2, "sequence": True},
    "ZeRO-2 and sequences": {**DATA_CONTEXT, "zero": "gradients", "model.tied": True},
}
ALL_THREE = {"mesh.data": 2, "mesh.context": 2, "mesh.tensor": 2, "sequence": True, "steps": 2}
EIGHT = {
    "matrices, sequences, batch": ALL_THREE,
    "with ZeRO-3": {**ALL_THREE, "zero": "weights"},
    "with heads dealt": {**ALL_THREE, "attention": "all_to_all"},
    "matrices in eight": {"mesh.tensor": 8, "sequence": True, "model.kv_heads": 8},
    "a batch in eight": {"mesh.data": 8, "batch": 8, "zero": "weights", "steps": 3},
}


@pytest.fixture(scope="module")
def found():
    return launched(4, RIGHT)


@pytest.fixture(scope="module")
def found_on_eight():
    return launched(8, EIGHT)


def holds(errors):
    worst = max(errors, key=errors.__getitem__)
    assert 0 < errors[worst] <= EXACT, (worst, errors[worst])


@pytest.mark.parametrize("name", RIGHT)
def test_compositions_train_as_one_process_does(found, name):
    holds(found.errors(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", EIGHT)
def test_compositions_of_three_on_eight_ranks(found_on_eight, name):
    holds(found_on_eight.errors(name))


def test_a_run_tells_passes_collectives_memory_and_errors():
    config = MeshTrainingConfig.model_validate({"mesh": {"tensor": 2, "data": 2}})
    log = Run.execute(run, config).log
    errors = [e.value for e in log.of(Level) if e.name == ERROR]
    assert max(errors) <= EXACT
    for rank in range(4):
        spans = [s for s in log.of(Span) if s.lane == f"rank {rank}"]
        assert {s.name for s in spans} >= {"F", "B", "optimiser", "all_reduce"}
        ends = sorted((s.start, s.stop) for s in spans)
        # Passes are told between the collectives they wait for: nothing lies over anything.
        assert all(a[1] <= b[0] + 1e-9 for a, b in zip(ends, ends[1:], strict=False))
        levels = {e.name: e.value for e in log.of(Level) if e.lane == f"rank {rank}"}
        for kind in ("weights", "gradients", "optimiser"):
            assert levels[f"{kind} counted"] == levels[f"{kind} by formula"] > 0
            assert f"memory/{kind}" in levels
    layer = [m for m in log.of(Move) if "layer_0.out" in m.tag]
    # A row-parallel output forward, the input's gradient of a column-parallel pair backward.
    assert len(layer) == 2 * 4
    assert {m.bytes for m in layer} == {config.batch // 2 * config.tokens * 32 * 4}
