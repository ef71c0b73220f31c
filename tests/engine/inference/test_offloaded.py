"""Attention offloaded: what a step costs by its parts, what is refused, what crosses the link."""

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.offloaded_cost import WAIT, crossing
from engine.inference.executors.offloaded import Offloaded, OffloadedHere
from engine.inference.executors.tensors.offloaded_attention import plain, shared
from engine.models.kv import cache_spec
from engine.models.loading.find import find

MODEL = find("llama-2-13b").config
CONFIG = InferenceConfig(
    model="llama-2-13b", dtype="bfloat16", pages=100, page_size=64, executor=Offloaded()
)


def cost(**changes):
    executor = update(CONFIG, {f"executor.{name}": value for name, value in changes.items()})
    return executor.executor.build(executor).executor.cost


def decode(asked, sequences=64, context=1000):
    return asked.describe(asked.work.counted(sequences, sequences * context, [], sequences))


def test_groups_take_turns_where_that_is_sooner():
    one, two = (decode(cost(groups=groups, bandwidth=1e15), 512) for groups in (1, 2))
    computing = sum(op.seconds for op in one if op.name != WAIT)
    assert computing <= sum(op.seconds for op in two) < computing + one[-1].seconds
    few = (decode(cost(groups=groups, bandwidth=1e15), 4) for groups in (1, 2))
    assert next(few) == next(few)


def test_a_slow_link_is_waited_for():
    bytes_crossed = 64 * crossing(MODEL, "bfloat16")
    waited = decode(cost(groups=1, bandwidth=1e8))[-1].seconds
    assert waited - decode(cost(groups=1, bandwidth=1e15))[-1].seconds == pytest.approx(
        bytes_crossed / 1e8, rel=1e-3
    )


def test_prompts_attend_where_they_are_computed_and_send_their_keys():
    asked = cost(bandwidth=1e9)
    ops = {op.name: op.seconds for op in asked.describe(asked.work.counted(0, 0, [(512, 0)], 1))}
    assert ops["attention"] > 0
    sent = 512 * cache_spec(MODEL, "bfloat16").bytes_per_token() / 1e9
    assert ops[WAIT] == pytest.approx(sent, rel=0.01)


def test_a_cache_that_attention_devices_do_not_hold_is_refused():
    with pytest.raises(BadInput, match="GB more than 16"):
        update(CONFIG, {"pages": 20_000}).executor.build(update(CONFIG, {"pages": 20_000}))


def test_processes_are_the_studys_to_start():
    with pytest.raises(BadInput, match="processes of its own"):
        OffloadedHere().build(CONFIG)


def test_a_model_of_latents_is_refused():
    config = find("deepseek-v2-lite").config
    with pytest.raises(BadInput, match="same keys and values"):
        plain(config, cache_spec(config))


def test_heads_that_do_not_divide_are_refused():
    assert shared(MODEL, 8).kv_heads == 5
    with pytest.raises(BadInput, match="workers 3"):
        shared(MODEL, 3)
