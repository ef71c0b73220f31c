"""What cannot be split is told in one line: what, by how much, and what to do."""

import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.models.families import parse
from engine.models.parameters import all_parameters
from engine.training.parallel.config import MeshTrainingConfig, Sizes
from engine.training.parallel.shards import cut, joined, supported

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
    "model.tied: the head is the embedding": {"mesh.pipeline": 2, "model.tied": True},
    "model.layers 2: cannot be dealt to 4 stages": {"mesh.pipeline": 4},
    "32 ranks, at most 16": {"mesh.data": 4, "mesh.tensor": 8},
    "tokens 6 of a rank: sequence-parallel norms": {
        "mesh.tensor": 4, "tokens": 6, "sequence": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("told", CASES)
def test_what_does_not_divide_says_so(told):
    with pytest.raises(BadInput, match=told) as found:
        update(MeshTrainingConfig(), CASES[told])
    assert "\n" not in str(found.value)


def test_models_of_other_kinds_are_refused_by_what_they_have():
    raw = Sizes().model().raw
    moe = {
        **raw, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
        "num_local_experts": 4, "num_experts_per_tok": 2,
    }  # fmt: skip
    with pytest.raises(BadInput, match="MixtralForCausalLM: has experts"):
        supported(parse(moe))


def test_a_rank_s_part_is_not_taken_for_the_whole():
    parameters = list(all_parameters(Sizes().model()))
    whole = {p.name: torch.randn(p.shape) for p in parameters}
    parts = [{p.name: cut(p, whole[p.name], at, 2) for p in parameters} for at in range(2)]
    back = joined(parameters, parts)
    assert all(torch.equal(back[name], whole[name]) for name in whole)
    query = next(p for p in parameters if p.roles[0][0] == "query")
    with pytest.raises(BadInput, match="give the whole weights"):
        cut(query, parts[0][query.name], 0, 2)
