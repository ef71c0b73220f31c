"""The closed form of a step's time equals the roofline, operation by operation."""

import numpy as np
import pytest

from engine.hardware.device import Device, device
from engine.hardware.roofline import bound
from engine.inference.executors.costs.step_cost import StepCost
from engine.kernels.decoder_step import DecoderStep
from engine.models.batch import pack
from engine.models.footprint import layers_with, step_work
from engine.models.kv import PagedKV
from engine.models.loading.find import find

MODELS = ("gpt2", "llama-3.1-8b", "mixtral-8x7b", "gemma-2-9b", "deepseek-v3", "qwen3-30b-a3b")


def op_by_op(config, sheet: Device, new, context, rows, dtype):
    """Seconds, flops, bytes and roofs the plain way: ask for each operation, bound each."""
    quick = sheet.model_copy(update={"launch": 0.0})
    seconds = flops = moved = 0.0
    parts = []
    for work in step_work(config, new, context, dtype=dtype, logits=rows):
        took = bound(quick, work.flops, work.bytes, dtype)
        launch = sheet.launch * layers_with(config, work.name)
        parts.append((work.name, took.seconds + launch))
        seconds += took.seconds + launch
        flops += work.flops
        moved += work.bytes
    return seconds, flops, moved, parts


def steps():
    """Decodes, a lone prompt, chunks in the middle, a mix, contexts past every window."""
    random = np.random.default_rng(0)
    yield np.ones(1, np.int32), np.array([1], np.int32), 1
    yield np.ones(64, np.int32), random.integers(1, 9000, 64).astype(np.int32), 64
    yield np.array([700], np.int32), np.array([700], np.int32), 1
    yield np.array([512], np.int32), np.array([6000], np.int32), 0
    new = np.concatenate([np.ones(20, np.int32), random.integers(1, 400, 5).astype(np.int32)])
    yield new, new + random.integers(0, 9000, 25).astype(np.int32), 22


@pytest.mark.parametrize("name", MODELS)
def test_the_closed_form_is_the_sum_of_the_operations(name):
    config, sheet = find(name).config, device("h100-sxm")
    cost = StepCost(config, sheet, "bfloat16")
    for new, context, rows in steps():
        shape = cost.shape(new, context, rows)
        seconds, flops, moved, parts = op_by_op(config, sheet, new, context, rows, "bfloat16")
        assert cost.total(shape) == pytest.approx((seconds, flops, moved), rel=1e-12)
        if (new == 1).all():
            assert cost.decode_shape(context - 1, rows) == shape
        for told, (op, took) in zip(cost.describe(shape), parts, strict=True):
            assert told.name == op and told.seconds == pytest.approx(took, rel=1e-12)


def launched(name: str) -> dict[str, float]:
    """How often each kind of operation is launched in a step."""
    sheet = device("h100-sxm").model_copy(update={"launch": 1.0})
    cost = StepCost(find(name).config, sheet, "bfloat16")
    return dict(zip((op.name for op in cost.operations), cost.launches, strict=True))


def test_each_kind_of_layer_launches_its_own_operations_alone():
    pattern = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"  # of Nemotron-H 8B
    told = launched("nemotron-h-8b")
    assert told["qkv"] == told["attention"] == pattern.count("*") == 4
    assert told["mamba"] == told["recurrence"] == pattern.count("M")
    assert told["mlp"] == pattern.count("-") and told["norms"] == len(pattern)
    assert told["out"] == pattern.count("M") + pattern.count("*")
    assert told["embedding"] == told["head"] == 1
    routed = launched("deepseek-v3")
    assert routed["mlp"] == 3 and routed["experts"] == routed["router"] == 58
    assert routed["attention"] == routed["norms"] == 61


def test_a_processor_is_charged_one_call_for_a_step_that_the_engine_makes_in_one(monkeypatch):
    """As many as the real executor makes; of a general pass a call of each kind and layer."""
    calls = []
    spread = DecoderStep.__call__
    monkeypatch.setattr(
        DecoderStep, "__call__", lambda step, *given: (calls.append(1), spread(step, *given))[0]
    )
    processor = device("h100-sxm").model_copy(update={"launch": 1.0, "kind": "cpu"})
    for name, dtype in (("running-sum-400k", "float32"), ("running-sum-400k", "bfloat16")):
        model = find(name).open(dtype)
        kv = PagedKV(model.spec, 4, 16)
        for new, at in (([5] * 20, 0), ([7], 20)):
            model.forward(pack([new], [at], [[0, 1]], 16), kv)
        cost = StepCost(model.config, processor, dtype)
        assert model.fused is not None and len(calls) == 2
        assert 2 * sum(cost.launches) == len(calls), "a prompt's and an answer's"
        assert cost.describe(cost.shape(*[np.ones(1, np.int32)] * 2, 1))[0].roof == "launch"
        calls.clear()
    for general in ("gpt2", "gemma-2-9b", "mixtral-8x7b"):
        assert sum(StepCost(find(general).config, processor, "bfloat16").launches) > 50


def test_a_processors_products_take_rows_by_fours_and_its_work_is_counted_as_it_is():
    config = find("running-sum-400k").config
    slow = device("h100-sxm").model_copy(update={"kind": "cpu", "peaks": {"float32": 1e9}})
    slow = slow.model_copy(update={"launch": 0.0, "bandwidth": 1e30})
    cost = StepCost(config, slow, "float32")
    shapes = [cost.decode_shape(np.full(rows, 20), rows) for rows in range(1, 10)]
    mlp = [next(o for o in cost.describe(shape) if o.name == "mlp") for shape in shapes]
    one = mlp[0].seconds
    assert [o.seconds / one for o in mlp] == pytest.approx([1, 2, 4, 4, 8, 8, 8, 8, 12])
    assert [o.flops / mlp[0].flops for o in mlp] == pytest.approx(range(1, 10))
    for shape in shapes:
        told = sum(o.seconds for o in cost.describe(shape))
        assert cost.total(shape)[0] == pytest.approx(told)
        assert cost.total(shape)[1:] == pytest.approx(cost.work(shape))


def test_a_processor_waits_for_what_it_reads_and_then_multiplies():
    config, sheet = find("running-sum-400k").config, device("h100-sxm")
    fields = {"kind": "cpu", "peaks": {"float32": 1e9}, "bandwidth": 1e9, "launch": 0.0}

    def of(kind: str, **more: object) -> list[float]:
        made = StepCost(config, sheet.model_copy(update=fields | more | {"kind": kind}), "float32")
        return [o.seconds for o in made.describe(made.decode_shape(np.full(2, 20), 2))]

    both, reading = of("cpu"), of("cpu", peaks={"float32": 1e30})
    computing = of("cpu", bandwidth=1e30)
    assert both == pytest.approx([a + b for a, b in zip(reading, computing, strict=True)])
    hidden = of("gpu")
    assert hidden == pytest.approx([max(a, b) for a, b in zip(reading, computing, strict=True)])


def test_integer_coefficients_make_it_equal_to_the_last_bit():
    config = find("llama-3.1-8b").config
    cost = StepCost(config, device("h100-sxm"), "bfloat16")
    for new, context, rows in steps():
        _, flops, moved, _ = op_by_op(config, cost.device, new, context, rows, "bfloat16")
        assert cost.total(cost.shape(new, context, rows))[1:] == (flops, moved)


def test_decoding_a_large_model_alone_is_bound_by_reading_its_weights():
    config, sheet = find("llama-3.1-8b").config, device("h100-sxm").at_best()
    cost = StepCost(config, sheet.model_copy(update={"launch": 0.0}), "bfloat16")
    one = np.ones(1, np.int32)
    seconds, _, moved = cost.total(cost.shape(one, one, 1))
    # 7.5e9 parameters past the embedding, two bytes each, at 3.35 TB/s.
    assert seconds == pytest.approx(7.504e9 * 2 / 3.35e12, rel=0.005)
    assert {op.roof for op in cost.describe(cost.shape(one, one, 1))} == {"bandwidth"}


def test_a_long_prompt_is_bound_by_arithmetic_and_a_tiny_model_by_launches():
    sheet = device("h100-sxm")
    cost = StepCost(find("llama-3.1-8b").config, sheet, "bfloat16")
    long = np.array([4096], np.int32)
    roofs = {op.name: op.roof for op in cost.describe(cost.shape(long, long, 1))}
    assert roofs["mlp"] == roofs["qkv"] == "bfloat16"
    tiny = StepCost(find("gpt2").config, sheet, "bfloat16")
    one = np.ones(1, np.int32)
    assert {op.name: op.roof for op in tiny.describe(tiny.shape(one, one, 1))}["out"] == "launch"


def test_an_unlimited_context_costs_more_than_a_window():
    config = find("gemma-2-9b").config
    cost = StepCost(config, device("h100-sxm"), "bfloat16")
    one, far = np.ones(1, np.int32), np.array([60_000], np.int32)
    windows = {w for w, *_ in cost.windows}
    assert len(windows) == 2 and 0 in windows
    shape = cost.shape(one, far, 1)
    assert config.layers * 60_000 / 2 < shape.pairs < 0.6 * config.layers * 60_000
