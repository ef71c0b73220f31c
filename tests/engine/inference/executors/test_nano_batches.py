"""Nano-batches: what runs beside what, how long a step takes by it, and that two workers say what
one pass says."""

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Span
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.nano_batches import NanoBatchedCost, Pipeline
from engine.inference.executors.costs.unit_lanes import (
    COMPUTE,
    LANES,
    MEMORY,
    NETWORK,
    Operation,
    placed,
)
from engine.inference.executors.nano_batches import NanoBatches
from engine.inference.executors.tensors.nano_batches import NanoBatchedModel, halves
from engine.inference.run import run
from engine.inference.workloads.steady import Steady
from engine.models.batch import pack
from engine.models.kv import PagedKV
from engine.models.loading.find import find
from engine.models.model import Model
from engine.models.ops import kernel_ops

CONFIG = InferenceConfig(
    model="llama-3.1-8b",
    dtype="bfloat16",
    executor=NanoBatches(device="a100-sxm-80gb", tensor_parallel=2),
    workload=Steady(count=3, prompt=300, output=3),
    pages=400,
    step_tokens=512,
)


def cost(**changes) -> NanoBatchedCost:
    one = update(CONFIG, {f"executor.{name}": value for name, value in changes.items()})
    return one.executor.build(one).executor.cost


def mixed(asked: NanoBatchedCost, answers=300, context=1500, prompts=((400, 0), (324, 100))):
    return asked.plain.counted(answers, answers * context, list(prompts), answers + len(prompts))


def operation(lane, seconds, reads=0.0, after=()):
    return Operation(lane, 0, lane, seconds, reads, after)


def test_a_lane_takes_the_part_that_is_ready() -> None:
    found = placed(
        [
            operation(NETWORK, 5.0),
            operation(COMPUTE, 1.0, after=(0,)),
            operation(COMPUTE, 2.0)._replace(part=1),
        ],
        0.4, 0.4, 0.0,
    )  # fmt: skip
    assert [one.stop for one in found] == pytest.approx([5.0, 6.0, 2.0])


def test_alone_an_operation_has_all_units() -> None:
    one, two = placed([operation(COMPUTE, 2.0), operation(MEMORY, 3.0, 1.0, (0,))], 0.1, 0.4, 0.15)
    assert (one.start, one.stop, two.start, two.stop) == pytest.approx((0, 2, 2, 5))


def test_beside_one_another_each_goes_as_fast_as_its_units() -> None:
    one, two = placed([operation(COMPUTE, 3.0), operation(MEMORY, 1.0, 0.9)], 0.25, 0.5, 0.15)
    assert two.stop == pytest.approx(2.0)  # half of memory's rate with half of the units it wants
    assert one.stop == pytest.approx(2.0 + (3.0 - 0.75 * 2.0))


def test_products_that_read_leave_less_of_the_memorys_rate() -> None:
    _, two = placed([operation(COMPUTE, 30.0, 0.5), operation(MEMORY, 1.0, 1.0)], 0.4, 0.4, 0.15)
    assert two.stop == pytest.approx(1.0 / (1.0 - 0.6 * 0.5))


def test_a_collective_takes_its_units_from_products() -> None:
    one, two = placed([operation(COMPUTE, 2.0), operation(NETWORK, 1.0)], 0.4, 0.4, 0.2)
    assert two.stop == pytest.approx(1.0) and one.stop == pytest.approx(1.0 + 2.0 - 0.8)


def test_in_turn_nothing_overlaps() -> None:
    found = placed(
        [operation(COMPUTE, 1.0), operation(MEMORY, 2.0, 1.0), operation(NETWORK, 3.0)],
        0.4, 0.4, 0.15, beside=False,
    )  # fmt: skip
    assert max(one.stop for one in found) == pytest.approx(6.0)


def test_a_step_is_no_sooner_than_any_of_its_resources() -> None:
    asked = cost()
    shape = mixed(asked)
    for share in (0.1, 0.4):
        how = Pipeline(0.4, share)
        went = asked.went(shape, how, asked.layers)
        busy = {
            lane: sum(one.operation.seconds for one in went if one.operation.lane == lane)
            for lane in LANES
        }
        last = max(one.stop for one in went)
        assert max(busy.values()) <= last <= sum(busy.values()) * (1 + 1e-9)
        assert asked.seconds(shape, how) == pytest.approx(asked._once(shape) + last, rel=0.01)


def test_each_lane_does_one_thing_at_a_time_and_all_in_order() -> None:
    asked = cost()
    went = asked.went(mixed(asked), Pipeline(0.4, 0.3), 3)
    for lane in LANES:
        own = sorted((one.start, one.stop) for one in went if one.operation.lane == lane)
        assert all(a[1] <= b[0] + 1e-12 for a, b in zip(own, own[1:], strict=False))
    for one in went:
        assert all(went[n].stop <= one.start + 1e-12 for n in one.operation.after)


def test_parts_hold_all_tokens_of_the_step() -> None:
    asked = cost()
    shape = mixed(asked)
    for split in (0.1, 0.3, 0.5, 0.7):
        one, two = asked.parts(shape, split)
        assert one.tokens + two.tokens == shape.tokens and one.tokens == round(1024 * split)
        assert one.seen + two.seen == shape.seen and one.rows + two.rows == shape.rows
        assert one.pairs + two.pairs == shape.pairs  # a chunk's second half sees its first
        assert one.singles + two.singles == shape.singles
    assert asked.parts(shape, 1.0) == [shape]


def test_overlap_is_sooner_and_in_turn_later_than_one_part() -> None:
    shape = mixed(cost())
    beside, in_turn, one = (
        cost(overlap=how).total(shape)[0] for how in ("beside", "in_turn", "none")
    )
    assert beside < one < in_turn
    fixed = cost(split=0.5).total(shape)[0]
    assert beside <= fixed
    assert cost(overlap="none").total(shape)[2] < cost(split=0.5).total(shape)[2]  # weights twice


def test_one_token_is_one_part() -> None:
    asked = cost()
    alone = asked.plain.counted(1, 100, [], 1)
    assert asked.pipeline(alone).split == 1.0
    assert asked.total(alone)[0] == pytest.approx(
        sum(op.seconds for op in asked.describe(alone)), rel=1e-6
    )


def test_stages_are_refused() -> None:
    with pytest.raises(BadInput, match="tensor ranks alone"):
        cost(pipeline_parallel=2)


def test_a_profiled_step_tells_what_ran_beside_what() -> None:
    log = Run.execute(run, update(CONFIG, {"profile_every": 1})).log
    spans = [span for span in log.of(Span) if span.lane in LANES]
    steps = [span for span in log.of(Span) if span.lane == "engine" and span.name == "step"]
    assert {span.lane for span in spans} == set(LANES)
    assert {span.tag.split()[0] for span in spans} == {"mb=0", "mb=1"}
    assert all(a.time <= b.time for a, b in zip(spans, spans[1:], strict=False))
    first = [span for span in spans if span.time <= steps[0].time]
    assert first and all(span.start >= steps[0].start for span in first)


@pytest.mark.parametrize("units", [True, False])
def test_two_workers_give_the_bits_of_one_pass(units: bool) -> None:
    found = find("stdlib-draft-1m")
    model = found.open("float32")
    plain = Model(model.config, model.weights, "float32", ops=kernel_ops())
    ours = NanoBatchedModel(model, SimpleNamespace(units=units, fault="none"))
    random = np.random.default_rng(0)
    lengths, starts = [5, 1, 1, 17, 1], [0, 40, 3, 8, 31]
    chunks = [random.integers(0, 100, n).tolist() for n in lengths]
    batch = pack(chunks, starts, [list(range(4 * n, 4 * n + 4)) for n in range(5)], 16)
    caches = [PagedKV(model.spec, 20, 16) for _ in range(2)]
    for layers in zip(*(cache.layers for cache in caches), strict=True):
        for name in layers[0]:
            layers[0][name].normal_()
            layers[1][name].copy_(layers[0][name])
    for _ in range(3):
        rows = [
            each.forward(batch, cache) for each, cache in zip((plain, ours), caches, strict=True)
        ]
        assert torch.equal(*rows)
    for layers in zip(*(cache.layers for cache in caches), strict=True):
        assert all(torch.equal(layers[0][name], layers[1][name]) for name in layers[0])


def test_halves_are_by_sequences_and_about_even() -> None:
    batch = pack([[1] * 6, [2], [3], [4]], [0] * 4, [[n] for n in range(4)], 16)
    one, two = halves(batch)
    assert one.query_start_B1.tolist() == [0, 6] and two.query_start_B1.tolist() == [0, 1, 2, 3]
    assert two.tokens_T.tolist() == [2, 3, 4] and two.logits_at_R.tolist() == [0, 1, 2]
    alone = pack([[1, 2]], [0], [[0]], 16)
    assert halves(alone) == [alone]


def test_workers_end_with_the_model() -> None:
    before = set(threading.enumerate())
    model = find("stdlib-draft-1m").open("float32")
    ours = NanoBatchedModel(model, SimpleNamespace(units=True, fault="none"))
    list(ours.workers.map(abs, range(4)))
    mine = set(threading.enumerate()) - before
    assert mine
    del ours
    gc.collect()
    for thread in mine:
        thread.join(20)
    assert not any(thread.is_alive() for thread in mine)
