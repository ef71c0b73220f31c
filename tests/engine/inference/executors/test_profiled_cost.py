"""Steps by an operator profile: measured sizes come back, others lie between, gaps are counted."""

from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.hardware import device
from engine.hardware.cost.profile import Profile
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.costs.profiled_step_cost import ProfiledCost
from engine.inference.executors.modelled import Modelled
from engine.models.loading.find import find

LLAMA, L40S = find("llama-2-7b").config, device("l40s")
DENSE = ("embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn",
         "down_proj", "final_layernorm")  # fmt: skip


def written(folder, *, without: str = "", attention=()) -> str:
    """A profile whose operators take 1 us and 0.1 us a token, and calls what their sizes say."""
    dense = [f"{n},{t},{1 + 0.1 * t}" for n in DENSE if n != without for t in (1, 10, 100)]
    rows = [f"{name},{n},{5 + n}" for name in ("lm_head", "sampler") for n in (1, 64)]
    calls = [
        f"{chunk},{cached},{ones},{context},{9 + chunk + 0.01 * cached + ones * context / 100}"
        for chunk in (0, 16, 64)
        for cached in ((0,) if chunk == 0 else (0, 100))
        for ones in (0, 1, 8)
        for context in ((0,) if ones == 0 else (16, 64))
        if chunk or ones
    ]
    (folder / "dense.csv").write_text("\n".join(["# made", "layer,tokens,time_us", *dense]))
    (folder / "per_sequence.csv").write_text("\n".join(["layer,sequences,time_us", *rows]))
    head = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us"
    (folder / "attention.csv").write_text("\n".join([head, *(attention or calls)]))
    return str(folder)


def test_measured_times_come_back_and_others_lie_between(tmp_path):
    profile = Profile(Path(written(tmp_path)))
    assert profile.operator("o_proj", 10) == pytest.approx(2e-6)
    assert profile.operator("o_proj", 55) == pytest.approx(6.5e-6)
    assert profile.operator("o_proj", 200) == pytest.approx(21e-6), "on along the last two"
    assert profile.call(64, 100, 8, 64) == pytest.approx((9 + 64 + 1 + 5.12) * 1e-6)
    assert profile.call(0, 0, 8, 40) == pytest.approx((9 + 3.2) * 1e-6)
    assert profile.call(40, 50, 1, 64) == pytest.approx((9 + 40 + 0.5 + 0.64) * 1e-6)
    assert profile.gaps == {"o_proj of more than 100": 1}
    assert profile.call(64, 0, 8, 128) == pytest.approx((9 + 64 + 10.24) * 1e-6)
    assert profile.gaps["attention with kv_decode above 64"] == 1


def test_a_step_is_the_sum_of_its_operators(tmp_path):
    cost = cost_of(LLAMA, L40S, "float16", Modelled(device="l40s", profile=written(tmp_path)))
    assert isinstance(cost, ProfiledCost)
    shape = cost.shape(np.array([1, 1], np.int32), np.array([32, 48], np.int32), 2)
    once = (1.2 + 1.2 + 7 + 7) * 1e-6
    each = 8 * 1.2e-6 + (9 + 2 * 40 / 100) * 1e-6  # eight products and row operators, one call
    assert cost.total(shape)[0] == pytest.approx(once + LLAMA.layers * each)
    assert sum(op.seconds for op in cost.describe(shape)) == pytest.approx(cost.total(shape)[0])
    mixed = cost.shape(np.array([16, 1], np.int32), np.array([16, 48], np.int32), 2)
    assert cost.total(mixed)[0] > cost.total(shape)[0]


def test_an_operator_that_the_profile_lacks_keeps_the_roofline(tmp_path):
    cost = cost_of(LLAMA, L40S, "float16", Modelled(profile=written(tmp_path, without="o_proj")))
    shape = cost.shape(np.ones(2, np.int32), np.full(2, 32, np.int32), 2)
    told, plain = ({op.name: op.seconds for op in c.describe(shape)} for c in (cost, cost.plain))
    assert told["out"] == plain["out"] and told["mlp"] != plain["mlp"]
    assert cost.profile.gaps["operator o_proj"] == 1


@pytest.mark.parametrize(
    ("attention", "says"),
    [
        (["1,2,3"], "attention.csv:2: 5 columns of numbers"),
        (["16,0,0,0,fast"], "attention.csv:2: 5 columns of numbers"),
        (["16,0,0,0,-3"], "attention.csv:2: 5 columns of numbers"),
        (["16,0,0,0,nan"], "attention.csv:2: 5 columns of numbers"),
    ],
)
def test_a_bad_profile_is_said_in_one_line(attention, says, tmp_path):
    with pytest.raises(BadInput, match=says):
        Profile(Path(written(tmp_path, attention=attention)))


def test_a_folder_without_a_profile_is_said(tmp_path):
    with pytest.raises(BadInput, match=r"one file …dense.csv is needed; there: none"):
        Profile(tmp_path)
    with pytest.raises(BadInput, match="no such folder"):
        Profile(tmp_path / "none")
