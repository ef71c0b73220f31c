"""Steps shared by tensors or by tokens: what each way computes, sends and keeps."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.hardware.device import device
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.costs.rank_memory import rank_weights
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.shared_step_cost import (
    SharedCost,
    shared_cost,
    shared_weights,
)
from engine.inference.executors.modelled import Modelled
from engine.inference.policies.parallelism import ByTensors, ByTokens, Shift
from engine.models.loading.find import find

MODEL = find("qwen3-32b").config
EIGHT = Modelled(device="h200-sxm", tensor_parallel=8)


def shared(how, choice=EIGHT):
    return shared_cost(MODEL, device("h200-sxm"), "bfloat16", choice, how)


def prompts(cost, tokens):
    return cost.shape(np.array([tokens]), np.array([tokens]), 1)


def test_shift_takes_the_way_that_its_threshold_says():
    shift, tokens = shared(Shift(threshold=100)), shared(ByTokens())
    tensors = cost_of(MODEL, device("h200-sxm"), "bfloat16", EIGHT)
    for count, other in ((100, tensors), (101, tokens)):
        shape = prompts(shift, count)
        assert shift.total(shape) == other.total(shape)
        assert sum(op.seconds for op in shift.describe(shape)) == pytest.approx(
            shift.total(shape)[0]
        )


def test_by_tokens_many_are_done_sooner_and_one_later():
    cost = shared(ByTokens())
    assert isinstance(cost, SharedCost)
    for count, sooner in ((1, False), (8192, True)):
        shape = prompts(cost, count)
        assert (cost.total(shape)[0] < cost.tensor.total(shape)[0]) is sooner


def test_attention_is_the_same_either_way_and_matrices_are_shared_out():
    cost = shared(ByTokens())
    shape = prompts(cost, 8192)
    by_tokens = {op.name: op for op in cost.describe(shape)}
    by_tensors = {op.name: op for op in cost.tensor.describe(shape)}
    assert by_tokens["attention"] == by_tensors["attention"]
    assert by_tokens["mlp"].flops == pytest.approx(by_tensors["mlp"].flops)
    assert by_tokens["mlp"].bytes > by_tensors["mlp"].bytes  # whole matrices are read
    assert "all_reduce" not in by_tokens


def test_groups_sum_among_their_own_ranks():
    names = [op.name for op in shared(ByTokens(groups=4)).describe(prompts(shared(ByTokens()), 64))]
    assert {"all_reduce", "all_to_all"} < set(names)


def test_weights_of_both_copies_are_held():
    whole, ranks = rank_weights(MODEL, Ranks(), "bfloat16"), Ranks(tensor=8)
    held = shared_weights(MODEL, ranks, "bfloat16", Shift(groups=4))
    assert held == pytest.approx(whole * (1 / 2 + 1 / 8), rel=1e-3)
    assert shared_weights(MODEL, ranks, "bfloat16", ByTensors()) == rank_weights(
        MODEL, ranks, "bfloat16"
    )


@pytest.mark.parametrize(
    ("how", "choice", "why"),
    [
        (ByTokens(groups=3), EIGHT, "3 groups of 8 ranks"),
        (Shift(), Modelled(device="h200-sxm"), "tensor_parallel of 2"),
        (Shift(), EIGHT.model_copy(update={"pipeline_parallel": 2}), "tensor ranks alone"),
    ],
)
def test_what_cannot_be_shared_is_refused(how, choice, why):
    with pytest.raises(BadInput, match=why):
        shared(how, choice)


def test_by_tensors_alone_stages_and_replicas_go_beside():
    for more in ({"pipeline_parallel": 2}, {"data_parallel": 2}):
        choice = EIGHT.model_copy(update={"tensor_parallel": 4, **more})
        whole = cost_of(MODEL, device("h200-sxm"), "bfloat16", choice)
        cost = shared(ByTensors(), choice)
        shape = prompts(cost, 512)
        assert cost.total(shape) == whole.total(shape)
        with pytest.raises(BadInput, match="leave pipeline_parallel"):
            shared(Shift(threshold=100), choice)
