"""A seed's runs are one another's: tokens, and traces apart from their times; 20 with --full."""

import msgspec
import numpy as np

from engine.core.events import Level
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.requests.request import Request, sampling
from engine.inference.run import run
from tests.engine.inference.small import TINY, real_engine, serve, tiny_model

TIMES = {"time", "start"}


def runs(full: bool) -> int:
    return 20 if full else 4


def told(events: list) -> list[dict]:
    """The events without when, and without what is measured of time itself."""
    kept = [e for e in events if not (isinstance(e, Level) and "second" in e.name)]
    return [
        {**{k: v for k, v in msgspec.structs.asdict(e).items() if k not in TIMES},
         "kind": type(e).__name__} for e in kept
    ]  # fmt: skip


def job() -> list[Request]:
    draw = np.random.default_rng(12)
    wishes = [{}, {"temperature": 1.0, "top_p": 0.9}, {"temperature": 0.7, "n": 3}]
    return [
        Request(
            draw.integers(0, TINY["vocab_size"], int(draw.integers(2, 40))).astype(np.int32),
            sampling(max_tokens=int(draw.integers(4, 20)), **wishes[number % 3]),
        )
        for number in range(12)
    ]


def test_real_runs_of_a_seed_give_the_same_tokens_and_traces(full):
    model, seen = tiny_model(), []
    for _ in range(runs(full)):
        held, events = real_engine(model, pages=40, seed=4)
        answers = serve(held, job())
        seen.append((answers, told(events)))
    assert all(each == seen[0] for each in seen)
    other, _ = real_engine(model, pages=40, seed=5)
    assert serve(other, job()) != seen[0][0], "the seed means nothing"


def test_modelled_runs_of_a_seed_are_the_same_to_the_last_byte(full):
    config = InferenceConfig(
        executor="modelled", pages=300,
        workload={"kind": "poisson", "count": 20, "rate": 400.0},
    )  # fmt: skip
    logs = [Run.execute(run, config, seed=3).log for _ in range(runs(full))]
    encoded = [msgspec.msgpack.encode(log.events) for log in logs]
    assert len(set(encoded)) == 1
