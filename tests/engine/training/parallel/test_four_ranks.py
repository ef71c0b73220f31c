"""Two ways to split at once, on four ranks, and three on eight: still one process's training."""

import pytest

from tests.engine.training.parallel.made import EXACT, launched

TENSOR_DATA = {"mesh.tensor": 2, "mesh.data": 2}
TENSOR_CONTEXT = {"mesh.tensor": 2, "mesh.context": 2}
DATA_CONTEXT = {"mesh.data": 2, "mesh.context": 2}
RIGHT = {
    "matrices in four": {"mesh.tensor": 4, "sequence_parallel": True},
    "matrices and batch": {**TENSOR_DATA, "sequence_parallel": True},
    "matrices and sequences, ring": {**TENSOR_CONTEXT, "sequence_parallel": True},
    "matrices and sequences, heads dealt": {**TENSOR_CONTEXT, "attention": "all_to_all"},
    "batch and sequences": {**DATA_CONTEXT, "steps": 2},
    "batch and sequences, token ring": {
        **DATA_CONTEXT,
        "attention": "token_ring",
        "layout": "striped",
    },
    "ZeRO-1 and matrices": {**TENSOR_DATA, "zero": "optimizer", "steps": 2},
    "ZeRO-3 and matrices": {
        **TENSOR_DATA,
        "zero": "weights",
        "steps": 2,
        "sequence_parallel": True,
    },
    "ZeRO-2 and sequences": {**DATA_CONTEXT, "zero": "gradients", "model.tied": True},
}
PIPELINE = {"mesh.pipeline": 2, "microbatches": 2}
RIGHT |= {
    "pipeline and matrices": {**PIPELINE, "mesh.tensor": 2, "sequence_parallel": True},
    "pipeline and batch, ZeRO-1": {
        **PIPELINE, "mesh.data": 2, "zero": "optimizer", "steps": 2,
    },
    "pipeline and sequences, backward in two": {
        **PIPELINE, "mesh.context": 2, "schedule": "zb_h1",
    },
    "two stages a rank and matrices": {
        **PIPELINE, "mesh.tensor": 2, "schedule": "zb_v", "model.layers": 4,
        "model.family": "qwen3", "sequence_parallel": True, "microbatches": 4,
    },
}  # fmt: skip
ALL_THREE = {
    "mesh.data": 2,
    "mesh.context": 2,
    "mesh.tensor": 2,
    "sequence_parallel": True,
    "steps": 2,
}
EIGHT = {
    "matrices, sequences, batch": ALL_THREE,
    "with ZeRO-3": {**ALL_THREE, "zero": "weights"},
    "with heads dealt": {**ALL_THREE, "attention": "all_to_all"},
    "matrices in eight": {"mesh.tensor": 8, "sequence_parallel": True, "model.kv_heads": 8},
    "pipeline, matrices, batch": {**PIPELINE, "mesh.tensor": 2, "mesh.data": 2, "steps": 2},
    "interleaved, matrices, batch": {
        **PIPELINE, "mesh.tensor": 2, "mesh.data": 2, "schedule": "interleaved_1f1b",
        "model.layers": 4, "sequence_parallel": True, "zero": "optimizer", "steps": 2,
    },
    "pipeline, matrices, sequences": {
        **PIPELINE, "mesh.tensor": 2, "mesh.context": 2, "attention": "all_to_all",
    },
    "a batch in eight": {"mesh.data": 8, "batch": 8, "zero": "weights", "steps": 3},
}  # fmt: skip


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
