"""What cannot be split is told in one line: what, by how much, and what to do."""

from typing import get_args

import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.models.families import parse
from engine.models.parameters import all_parameters
from engine.training.loop.family import Family
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.sizes import Sizes
from engine.training.parallel.tensor.shards import cut, joined, splits, supported

CASES = {
    "attention heads 6 cannot be dealt evenly to 4 tensor ranks": {
        "mesh.tensor": 4, "model.heads": 6, "model.kv_heads": 2,
    },
    "key/value heads 2 cannot be dealt evenly to 4 tensor ranks": {
        "mesh.tensor": 4, "model.kv_heads": 2,
    },
    "vocabulary 49 cannot be dealt evenly to 2 tensor ranks": {
        "mesh.tensor": 2, "model.vocabulary": 49,
    },
    "width of the feed-forward 65 cannot": {"mesh.tensor": 2, "model.width": 65},
    "batch 4: cannot be dealt evenly to 3 replicas": {"mesh.data": 3},
    "tokens 16: do not divide into 6 parts": {"mesh.context": 3},
    "kv_heads 1: all_to_all deals heads": {
        "mesh.context": 2, "mesh.tensor": 4, "attention": "all_to_all",
    },
    "each replica's 2 sequences cannot be dealt evenly to 4 microbatches": {
        "mesh.data": 2, "microbatches": 4,
    },
    "zero weights: a stage's weights stay whole": {
        "mesh.pipeline": 2, "microbatches": 2, "zero": "weights",
    },
    "width of an expert 65 cannot": {
        "mesh.tensor": 2, "model.family": "mixtral", "model.width": 65,
    },
    "Gemma2ForCausalLM: has a softcap in attention, which context ranks": {
        "mesh.context": 2, "model.family": "gemma2",
    },
    "model: 2 layers cannot be dealt to 4 stages": {"mesh.pipeline": 4},
    "32 ranks, at most 16": {"mesh.data": 4, "mesh.tensor": 8},
    "tokens 6 of a rank: sequence-parallel norms": {
        "mesh.tensor": 4, "tokens": 6, "sequence_parallel": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("told", CASES)
def test_what_does_not_divide_says_so(told):
    with pytest.raises(BadInput, match=told) as found:
        update(MeshTrainingConfig(), CASES[told])
    assert "\n" not in str(found.value)


def test_what_ranks_do_not_split_is_told_by_name():
    raw = Sizes().model().raw
    with pytest.raises(BadInput, match="LlamaForCausalLM: has embeddings of paths of thought"):
        supported(parse({**raw, "thinking_paths": 2}))
    with pytest.raises(BadInput, match="MistralForCausalLM: has an attention window"):
        named = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
        supported(parse({**raw, **named, "sliding_window": 8}), context=2)


@pytest.mark.parametrize("family", get_args(Family))
def test_a_rank_s_part_is_not_taken_for_the_whole(family):
    model = update(Sizes(), {"family": family}).model()
    parameters, plan = list(all_parameters(model)), splits(model, 2)
    whole = {p.name: torch.randn(p.shape) for p in parameters}
    parts = [
        {p.name: cut(p, whole[p.name], plan[p.name], at, 2) for p in parameters} for at in range(2)
    ]
    back = joined(parameters, parts, plan)
    assert all(torch.equal(back[name], whole[name]) for name in whole)
    out = next(p for p in parameters if p.roles[0][0] == "out")
    with pytest.raises(BadInput, match="give the whole weights"):
        cut(out, parts[0][out.name], plan[out.name], 0, 2)
