"""Blocks of masks on a described device: as many steps as a policy says, each of a whole text."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.events import Blob, Branch, Token
from engine.core.log import Log
from engine.core.run import Live
from engine.fleet.config import FleetConfig
from engine.fleet.run import build
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.policies.unmasking import RandomOrder
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request, sampling
from engine.inference.run import run
from engine.inference.serving_time.described import ServingRun
from engine.models.footprint import parameter_count
from engine.models.loading.find import find

PROMPT, PLACES = 100, 28
OF = {"model": "llada-8b", "dtype": "bfloat16", "pages": 512, "prefix_sharing": False}


def engine(**fields) -> Engine:
    executor = {"kind": "modelled", "device": "h100-sxm"}
    config = InferenceConfig(**{**OF, "executor": executor, **fields})
    built = config.executor.build(config)
    return Engine(config, built.executor, built.clock, [].append)


def asked(places: int = PLACES) -> Request:
    wish = sampling(max_tokens=places, temperature=1.0, ignore_eos=True)
    return Request(np.arange(PROMPT, dtype=np.int32), wish)


def test_its_shape_has_the_parameters_published():
    assert 2 * parameter_count(find("llada-8b").config) == 16_031_162_368


@pytest.mark.parametrize(("tokens", "steps"), [(1, 28), (3, 10), (28, 1)])
def test_steps_and_seconds_are_those_of_so_many_whole_texts(tokens, steps):
    held = engine(unmasking={"kind": "confidence", "tokens": tokens})
    texts = [asked(), asked()]
    for one in texts:
        held.add(one)
    held.run()
    assert [one.canvas.steps for one in texts] == [steps, steps] and held.number == steps
    cost, long = held.executor.cost, PROMPT + PLACES
    layers = find("llada-8b").config.layers
    told = cost.shape(np.full(2, long), np.full(2, long + (long - 1) // 2), 2 * PLACES)
    assert abs(told.pairs - 2 * layers * long * long) <= layers * long, "every token sees all"
    assert (told.tokens, told.rows) == (2 * long, 2 * PLACES)
    each = cost.total(told)[0] + held.executor.choice.per_step
    assert held.clock.now() == pytest.approx(steps * each)


def test_ordinary_rows_step_beside_them():
    held, plain, masked = engine(model="llama-2-7b"), asked(12), asked()
    plain.seed, masked.canvas = 7, Canvas(5, RandomOrder(tokens=4))
    held.add(plain)
    held.add(masked)
    held.run()
    assert masked.canvas.steps == 7 and held.number == 12
    alone, again = engine(model="llama-2-7b"), asked(12)
    again.seed = 7
    alone.add(again)
    alone.run()
    assert plain.generated.tolist() == again.generated.tolist()
    assert held.clock.now() > alone.clock.now()


def test_policies_that_ask_how_sure_a_model_is_are_refused():
    held = engine(unmasking="threshold")
    one = asked()
    held.add(one)
    held.run()
    assert one.state == "rejected" and "take a policy of unmasking that decides a" in one.reason


def test_what_counts_tokens_one_after_another_refuses_such_a_model():
    with pytest.raises(BadInput, match=r"llada-8b fills in masks, and a fleet counts"):
        build(FleetConfig(engine=InferenceConfig(**OF, executor="modelled")))
    with pytest.raises(BadInput, match="llada-8b: fills in masks"):
        ServingRun(model="llada-8b").config()


def test_a_run_tells_tokens_and_no_grid_of_what_nobody_said():
    live = Live(Log())
    run(InferenceConfig(**OF, executor="modelled", max_running=8), live)
    assert live.log.of(Token) and not live.log.of(Blob)
    over = [e for e in live.log.of(Branch) if e.state == "finished"]
    assert len(over) == len({e.thread for e in live.log.of(Branch)})


def test_guidance_is_a_pass_more():
    seconds = []
    for weight in (1.0, 2.0):
        held = engine(unmasking={"kind": "confidence", "tokens": PLACES})
        one = asked()
        one.sampling = one.sampling.model_copy(update={"guidance": weight})
        one.negative = np.zeros(PROMPT, np.int32)
        held.add(one)
        held.run()
        seconds.append(held.clock.now() - held.executor.choice.per_step)
    assert seconds[1] == pytest.approx(2 * seconds[0])
