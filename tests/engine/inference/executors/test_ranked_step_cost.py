"""A replica over ranks: less work each, collectives beside it, and what does not divide is said."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.hardware import device
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.costs.rank_memory import rank_cache, rank_weights
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.modelled import Modelled
from engine.models.footprint import weight_bytes
from engine.models.loading.find import find

H100, LLAMA, QWEN = device("h100-sxm"), find("llama-3.1-8b").config, find("qwen3-30b-a3b").config

GEMMA = find("gemma-4-31b").config


def told(config, **ranks):
    """Seconds by operation of a step of 64 answers and a chunk of a prompt."""
    cost = cost_of(config, H100, "bfloat16", Modelled(device="h100-sxm", **ranks))
    new, context = np.array([1] * 64 + [512], np.int32), np.array([900] * 64 + [512], np.int32)
    shape = cost.shape(new, context, 65)
    found = {op.name: op.seconds for op in cost.describe(shape)}
    assert sum(found.values()) == pytest.approx(cost.total(shape)[0])
    return found


def test_tensor_ranks_share_products_and_pay_for_sums():
    alone, four = told(LLAMA), told(LLAMA, tensor_parallel=4)
    assert alone["mlp"] / 4 < four["mlp"] < alone["mlp"] / 2
    assert four["attention"] < alone["attention"] and four["norms"] == alone["norms"]
    assert {"all_reduce", "gather"} <= set(four) and "all_reduce" not in alone
    hidden = 576 * LLAMA.hidden * 2
    assert four["all_reduce"] > (2 * LLAMA.layers + 1) * 1.5 * hidden / 4.5e11 / 1.1
    assert sum(four.values()) < sum(alone.values())


def test_stages_turn_their_groups_and_a_lone_sequence_walks_through_all():
    alone, four = told(LLAMA), told(LLAMA, pipeline_parallel=4)
    assert {"stages"} <= set(four)
    assert four["mlp"] < alone["mlp"]  # of a quarter of the tokens, through all layers
    cost = [
        cost_of(LLAMA, H100, "bfloat16", Modelled(pipeline_parallel=stages)) for stages in (1, 4)
    ]
    one = np.ones(1, np.int32), np.full(1, 100, np.int32), 1
    a, b = (c.total(c.shape(*one))[0] for c in cost)
    assert a < b < 1.1 * a


def test_experts_are_shared_by_all_data_ranks_with_an_exchange():
    alone, parts = told(QWEN), told(QWEN, data_parallel=4)
    whole = told(QWEN, data_parallel=4, expert_parallel=True)
    assert "expert_exchange" in parts and parts["expert_exchange"] == whole["expert_exchange"]
    assert parts["attention"] == alone["attention"]
    assert whole["experts"] != parts["experts"]
    assert "expert_exchange" not in told(LLAMA, data_parallel=4)


def test_a_rank_holds_its_share():
    whole = weight_bytes(LLAMA, "bfloat16")
    for ranks in (Ranks(tensor=4), Ranks(pipeline=4)):
        assert whole / 4 <= rank_weights(LLAMA, ranks, "bfloat16") < whole / 3.9
        assert rank_cache(LLAMA, ranks, "bfloat16") == LLAMA.kv_heads * 128 * 2 * 2 * 32 / 4
    for ranks in (Ranks(tensor=4), Ranks(pipeline=4)):  # of heads of two sizes, too
        whole, token = weight_bytes(GEMMA, "bfloat16"), rank_cache(GEMMA, Ranks(), "bfloat16")
        assert whole / 4 <= rank_weights(GEMMA, ranks, "bfloat16") < whole / 3.9
        assert rank_cache(GEMMA, ranks, "bfloat16") == token / 4
    assert rank_weights(QWEN, Ranks(data=2, experts=True), "bfloat16") < 0.6 * weight_bytes(
        QWEN, "bfloat16"
    )


@pytest.mark.parametrize(
    ("ranks", "says"),
    [
        (Ranks(tensor=3), "tensor_parallel 3: 32 heads do not divide"),
        (Ranks(pipeline=64), "the model has 32 layers"),
        (Ranks(experts=True), "the model has no experts"),
    ],
)
def test_what_does_not_divide_is_said(ranks, says):
    with pytest.raises(BadInput, match=says):
        ranks.check(LLAMA)
