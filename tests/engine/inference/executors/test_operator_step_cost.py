"""A forward pass by the operator cost model: slower than the roofs, told operation by operation."""

import numpy as np
import pytest

from engine.hardware import device
from engine.hardware.cost import curves
from engine.hardware.cost.constants import constants
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.costs.operator_step_cost import CurvedCost, fits
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.executors.modelled import Modelled
from engine.models.footprint import step_work
from engine.models.loading.find import find
from tests.engine.models import small

A100 = device("a100-sxm-80gb")
OLD = constants("operators")
LLAMA = find("llama-2-7b").config


def steps():
    yield np.ones(32, np.int32), np.full(32, 700, np.int32), 32
    yield np.array([2048], np.int32), np.array([2048], np.int32), 1


@pytest.mark.parametrize("sheet", ["a100-sxm-80gb", "h100-sxm", "b200-sxm"])
def test_no_step_beats_the_device_at_its_best(sheet):
    on = device(sheet)
    cost = CurvedCost(LLAMA, on, "float16", OLD)
    best = StepCost(LLAMA, on.at_best().model_copy(update={"launch": 0.0}), "float16")
    for new, context, rows in steps():
        shape = cost.shape(new, context, rows)
        seconds, flops, moved = cost.total(shape)
        assert (flops, moved) == pytest.approx(best.total(shape)[1:])
        assert best.total(shape)[0] < seconds < 4 * best.total(shape)[0]


def test_a_product_of_the_step_takes_what_the_model_says_of_it():
    cost = CurvedCost(LLAMA, A100, "float16", OLD)
    new, context, rows = next(steps())
    told = {op.name: op.seconds for op in cost.describe(cost.shape(new, context, rows))}
    out = curves.matmul(A100, OLD, 32, 4096, 4096, "float16").seconds.item()
    assert told["out"] == pytest.approx(LLAMA.layers * out)
    assert sum(told.values()) == pytest.approx(cost.total(cost.shape(new, context, rows))[0])


def test_every_operation_with_curves_has_an_interval_round_its_time():
    cost = CurvedCost(LLAMA, A100, "float16", OLD)
    for new, context, rows in steps():
        for op in cost.describe(cost.shape(new, context, rows)):
            assert op.low is not None and op.high is not None
            assert op.low < op.seconds < op.high
    plain = CurvedCost(find("mixtral-8x7b").config, A100, "float16", OLD)
    told = {op.name: op for op in plain.describe(plain.shape(*next(steps())))}
    assert told["experts"].low is None and told["qkv"].low is not None


def test_experts_and_latent_attention_keep_the_roofline():
    for name, op in (("mixtral-8x7b", "experts"), ("deepseek-v3", "qkv")):
        config = find(name).config
        curved = CurvedCost(config, A100, "bfloat16", OLD)
        plain = StepCost(config, A100, "bfloat16")
        shape = plain.shape(np.ones(4, np.int32), np.full(4, 50, np.int32), 4)
        a, b = ({o.name: o.seconds for o in c.describe(shape)}[op] for c in (curved, plain))
        assert a == b


def test_a_share_given_by_a_person_or_an_unknown_device_asks_the_roofline():
    assert isinstance(cost_of(LLAMA, A100, "float16", Modelled()), CurvedCost)
    assert isinstance(cost_of(LLAMA, A100, "float16", Modelled(curves=False)), StepCost)
    assert isinstance(cost_of(LLAMA, A100, "float16", Modelled(memory=0.5)), StepCost)
    assert not fits(device("tpu-v5e"), "bfloat16")
    assert isinstance(cost_of(LLAMA, device("tpu-v5e"), "bfloat16", Modelled()), StepCost)


@pytest.mark.parametrize("family", ["gemma-4", "gemma-4-wide", "llama-3"])
def test_layers_of_several_sizes_are_each_timed_as_they_are(family, monkeypatch):
    config = small.config(family)
    cost = CurvedCost(config, A100, "float16", OLD)
    monkeypatch.setattr(cost, "_product", lambda m, n, k: 2.0 * m * n * k)
    monkeypatch.setattr(cost, "_row", lambda *given: 0.0)
    flops = {op.name: op.flops for op in step_work(config, [7], [7])}
    for name, told in (("qkv", cost._qkv), ("out", cost._out), ("mlp", cost._mlp)):
        assert told(7) == flops[name]


@pytest.mark.parametrize("sheet", ["a100-sxm-80gb", "h100-sxm", "l40s", "b200-sxm"])
def test_what_one_call_tells_of_a_step_is_told_by_the_curves_to_the_bit(sheet):
    cost = cost_of(LLAMA, device(sheet), "bfloat16", Modelled(device=sheet))
    assert isinstance(cost, CurvedCost) and cost.calls
    random = np.random.default_rng(1)
    for _ in range(300):
        ones, prompts = int(random.integers(0, 200)), int(random.integers(0, 4))
        ones = max(ones, not prompts)
        starts_B = random.integers(0, 6000, ones + prompts).astype(np.int32)
        new_B = np.ones(ones + prompts, np.int32)
        new_B[ones:] = random.integers(1, 3000, prompts)
        rows, seen = ones + prompts, int(starts_B[:ones].sum()) + ones
        told = cost.mixed_seconds(new_B, starts_B, ones, rows, seen)
        shape = cost.mixed_shape(starts_B, new_B, ones, rows, seen)
        assert told == cost.seconds(shape) == pytest.approx(cost.total(shape)[0], rel=1e-12)
        count = int(random.integers(1, 40))
        alone = [cost.seconds(cost.decode_shape(starts_B + step, rows)) for step in range(count)]
        assert cost.decode_seconds(starts_B, count).tolist() == alone
