"""Continuous batching by counts: as the engine serves, in a hundredth of the time."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.events import Token
from engine.core.run import Run
from engine.hardware import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.modelled import Modelled
from engine.inference.policies.admission import Greedy
from engine.inference.run import run
from engine.inference.serving_time.counted_batch import Limits, serve
from engine.inference.workloads.replay import Asked, Replay
from engine.models.loading.find import find

LLAMA = find("llama-2-7b").config
ARRIVAL = np.cumsum(np.random.default_rng(0).exponential(0.02, 40))
PROMPT = np.random.default_rng(1).integers(20, 900, 40)
ANSWER = np.random.default_rng(2).integers(1, 120, 40)


def seconds(ones, seen, chunks, rows):
    return [1e-3 + 1e-5 * (ones + sum(new for new, _ in chunks)) + 1e-8 * seen]


@pytest.mark.parametrize("pages", [4000, 420])
def test_times_are_those_of_the_engine(pages):
    """`pages` 420: requests yield and come back."""
    choice = Modelled(device="a100-sxm-80gb")
    numbers = np.random.default_rng(3)
    asked = tuple(
        Asked(prompt=tuple(numbers.integers(0, 30000, p).tolist()), output=a, arrival=t)
        for t, p, a in zip(ARRIVAL, PROMPT.tolist(), ANSWER.tolist(), strict=True)
    )
    config = InferenceConfig(
        model="llama-2-7b", dtype="float16", workload=Replay(asked=asked), executor=choice,
        pages=pages, max_running=32, step_tokens=512, admission=Greedy(spare=0.0),
    )  # fmt: skip
    first, last = {}, {}
    for event in Run.execute(run, config).log:
        if isinstance(event, Token):
            first.setdefault(event.thread, event.time)
            last[event.thread] = event.time
    cost = cost_of(LLAMA, device("a100-sxm-80gb"), "float16", choice)

    def step(ones, seen, chunks, rows):
        shape = cost.plain.counted(ones, seen, chunks, rows)
        return [cost.total(shape)[0] + choice.per_step]

    found = serve(ARRIVAL, PROMPT, ANSWER, Limits(32, 512, pages), step)
    names = [f"r{n}" for n in range(40)]
    ours, theirs = found.first_R - ARRIVAL, np.array([first[n] for n in names]) - ARRIVAL
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.05)
    ends = np.array([last[n] for n in names])
    assert found.last_R.max() == pytest.approx(ends.max(), rel=0.02)
    assert bool(found.preempted) == (pages == 420)


def test_every_request_gets_its_tokens_in_steps_that_add_up():
    found = serve(ARRIVAL, PROMPT, ANSWER, Limits(8, 256, 300), seconds)
    assert (found.first_R > ARRIVAL).all() and (found.last_R >= found.first_R).all()
    assert (found.last_R[ANSWER == 1] == found.first_R[ANSWER == 1]).all()
    assert found.last_R.max() - ARRIVAL[0] >= sum(found.parts) > 0 < found.held <= 300


def test_what_cannot_be_served_is_said():
    with pytest.raises(BadInput, match="the cache holds 160"):
        serve(ARRIVAL, PROMPT, ANSWER, Limits(8, 256, 10), seconds)
    with pytest.raises(BadInput, match="a token of each"):
        serve(ARRIVAL, PROMPT, ANSWER, Limits(512, 256, 4000), seconds)
