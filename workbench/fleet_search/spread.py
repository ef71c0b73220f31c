"""Interval of a fleet's figures: played with all steps as much shorter and longer as the cost model
of its device may be wrong, as predictions of one engine are."""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.measure import Served, served
from engine.fleet.run import build, requests_of
from engine.fleet.run import run as drive
from engine.inference.executors.modelled import Modelled
from engine.inference.serving_time.described import Limits, OnDevices, ServingRun, Split
from engine.inference.serving_time.interval import SAMPLE, step_interval
from engine.inference.serving_time.replica import Replicas
from widgets.theme import figure


@dataclass(frozen=True)
class Spread:
    """The first requests served with steps as modelled, shorter and longer. `low`, `high`: of a
    step, over its modelled time, nine times in ten."""

    low: float
    high: float
    same: Served
    short: Served
    long: Served

    def of(self, name: str, value: float) -> tuple[float, float]:
        """The ends of a figure, by its name in `Served` ("ttft.p50"), around its value."""
        read = attrgetter(name)
        same = read(self.same)
        ends = [value * read(each) / same if same else value for each in (self.short, self.long)]
        return min(*ends, value), max(*ends, value)

    def told(self, name: str, value: float, unit: str = "") -> str:
        """The ends of a figure in words, for behind its value; "" of one that does not move."""
        low, high = self.of(name, value)
        return f" ({figure(low, unit)} to {figure(high, unit)})" if low < high else ""


def step_ends(config: FleetConfig) -> tuple[float, float] | None:
    """Between which factors of its modelled time an average step of a replica is to be found; None
    where its steps are not told by the operators' curves alone, whose errors are known."""
    how = config.engine.executor
    if (
        config.pools.device("decode")
        or type(how) is not Modelled
        or not how.curves
        or how.memory
        or how.arithmetic
    ):
        return None
    try:
        replicas = Replicas(_replica(config, how))
        asked = requests_of(_few(config), build(config))[:: config.replicas]
        columns = [(one.arrival, len(one.prompt), max(1, one.sampling.max_tokens)) for one in asked]
        arrival, prompt, answer = np.array(columns).T
        times = replicas.times(arrival, prompt.astype(int), answer.astype(int))
    except BadInput:  # what a prediction does not describe
        return None
    return step_interval(replicas, times)


def _replica(config: FleetConfig, how: Modelled) -> ServingRun:
    """One replica, as a prediction describes it. Raises BadInput."""
    engine = config.engine
    return update(
        ServingRun(),
        {
            "model": engine.model,
            "dtype": engine.dtype,
            "cluster": OnDevices(
                device=how.device, constants=how.constants, profile=how.profile
            ).model_dump(),
            "split": Split(
                tensor=how.tensor_parallel, pipeline=how.pipeline_parallel,
                expert=how.expert_parallel,
            ).model_dump(),
            "engine": {
                **Limits().model_dump(),
                "running": engine.max_running,
                "tokens": engine.step_tokens,
                "page": engine.page_size,
                "blocks": engine.pages,
                "per_step": how.per_step,
            },
        },
    )  # fmt: skip


def _few(config: FleetConfig) -> FleetConfig:
    """The same, of its first requests where there are many."""
    count = getattr(config.engine.workload, "count", None)
    many = count is not None and (count == 0 or count > SAMPLE)
    return update(config, {"engine.workload.count": SAMPLE}) if many else config


def spread(config: FleetConfig, found: Served) -> Spread | None:
    """Ends for the figures of a fleet that was served; None where they are not known, or its
    requests are many and cannot be made fewer."""
    few, ends = _few(config), step_ends(config)
    if ends is None or (few is config and found.requests > SAMPLE):
        return None

    def at(pace: float) -> Served:
        one = update(few, {"pace": config.pace * pace, "tokens": False})
        return served(Run.execute(drive, one).log, one)

    same = found if few is config else at(1.0)
    return Spread(*ends, same, *(at(each) for each in ends))
