"""Two ranks that share matrices, sequences or a batch train as one process does."""

import pytest

from engine.core.config import kinds
from engine.training.parallel.ownership import state_bytes
from engine.training.parallel.zero.zero import Zero
from tests.engine.training.parallel.made import EXACT, launched

ZEROS = {f"zero {kind}": kind for kind in sorted(kinds(Zero))}
RIGHT = {
    "matrices": {"mesh.tensor": 2},
    "matrices, norms split": {"mesh.tensor": 2, "sequence_parallel": True},
    "biases": {"mesh.tensor": 2, "sequence_parallel": True, "model.family": "qwen2"},
    "experts": {"mesh.tensor": 2, "model.family": "mixtral", "steps": 2},
    "experts, norms of heads and of tokens split": {
        "mesh.tensor": 2, "model.family": "qwen3_moe", "sequence_parallel": True,
    },
    "experts dealt to replicas, ZeRO-3": {
        "mesh.data": 2, "model.family": "qwen3_moe", "model.experts": 8, "zero": "weights",
        "batch": 2, "tokens": 4,
    },
    "latents": {"mesh.tensor": 2, "model.family": "deepseek_v2"},
    "latents of queries too, experts in groups": {
        "mesh.tensor": 2, "model.family": "deepseek_v3", "sequence_parallel": True, "steps": 2,
    },
    "latents over sequences": {"mesh.context": 2, "model.family": "deepseek_v3"},
    "learnt positions, fused queries": {
        "mesh.tensor": 2, "model.family": "gpt2", "sequence_parallel": True, "model.tied": True,
    },
    "learnt positions over sequences": {"mesh.context": 2, "model.family": "gpt2"},
    "caps, windows, four norms": {
        "mesh.tensor": 2, "model.family": "gemma2", "sequence_parallel": True, "model.tied": True,
    },
    "head and embedding on two stages": {
        "mesh.pipeline": 2, "microbatches": 2, "model.tied": True, "steps": 2,
        "model.family": "gpt2", "schedule": "zb_h1",
    },
    "head and embedding on one rank's two stages": {
        "mesh.pipeline": 2, "microbatches": 2, "model.tied": True, "steps": 2,
        "model.layers": 4, "schedule": "zb_v", "zero": "optimizer",
    },
    "experts and latents in a pipeline": {
        "mesh.pipeline": 2, "microbatches": 2, "model.family": "deepseek_v3", "steps": 2,
    },
    "norms of heads, tied": {"mesh.tensor": 2, "model.family": "qwen3", "model.tied": True},
    "sequences, ring": {"mesh.context": 2},
    "sequences, heads dealt": {"mesh.context": 2, "attention": "all_to_all"},
    # Odd sizes, so that shares have gaps; three steps, so that moments count.
    **{
        name: {"mesh.data": 2, "zero": kind, "steps": 3, "model.hidden": 40, "model.vocabulary": 51}
        for name, kind in ZEROS.items()
    },
}  # fmt: skip
WRONG = {
    "no sum of a tied head's gradients": {
        "mesh.pipeline": 2, "microbatches": 2, "model.tied": True, "left_out": "tied",
    },
    "no sum of activations": {"mesh.tensor": 2, "left_out": "activations"},
    "no sum of gradients": {"mesh.data": 2, "left_out": "gradients"},
    "no sum of a sequence's gradients": {"mesh.context": 2, "left_out": "gradients"},
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return launched(2, {**RIGHT, **WRONG})


@pytest.mark.parametrize("name", RIGHT)
def test_losses_gradients_and_weights_equal_one_process(found, name):
    errors = found.errors(name)
    kinds_of = {key.split("/")[0] for key in errors}
    assert kinds_of == {"loss", "gradient", "weight"}
    worst = max(errors, key=errors.__getitem__)
    assert 0 < errors[worst] <= EXACT, (worst, errors[worst])


@pytest.mark.parametrize("name", WRONG)
def test_a_sum_left_out_shows(found, name):
    assert max(found.errors(name).values()) > 1e-2


@pytest.mark.parametrize("name", ZEROS)
def test_bytes_held_are_those_of_the_formula(found, name):
    config = found.configs[name]
    for record in found.of(name):
        assert tuple(record.array("held")) == state_bytes(config, config.model.model(), record.rank)


def test_each_stage_of_zero_holds_less(found):
    configs = [found.configs[f"zero {kind}"] for kind in ("nothing", "optimizer", "gradients")]
    sums = [sum(state_bytes(config, config.model.model(), 0)) for config in configs]
    assert sums == sorted(sums, reverse=True)
    assert sums[0] > 1.3 * sums[1] > 1.5 * sums[2]


def test_zero_3_holds_less_between_forward_and_backward_than_zero_2(found):
    peaks = {}
    for name in ("zero gradients", "zero weights"):
        peaks[name] = max(float(v) for v in found.of(name)[0].array("peaks")[:, 0])
    assert peaks["zero weights"] < 0.8 * peaks["zero gradients"]
