"""Real latencies beside modelled ones at rising load, for engines behind a fleet's own router.

Real engines run in processes here; the router that a simulated fleet has sends each request to one
of them as it arrives. Their steps on other requests, sent in the same way at once and at the same
loads, calibrate the model, before each time that those which are compared are served: what
messages, and the sender on the same cores, cost is in both, and what else the machine does then.
The same requests are then served by a modelled fleet under the same router.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.run import Live
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.life import ANSWER, ARRIVAL, ENDED, FIRST, table
from engine.fleet.routers.router import Asked, Load, Router
from engine.fleet.run import build, serve, streamed
from engine.hardware.measure import measure
from engine.hardware.roofs import THIS_MACHINE
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.executors.modelled import Modelled
from engine.inference.requests.request import Request
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.synthetic import Lengths
from engine.models.loading.find import find
from workbench.real_and_modelled import engine_process
from workbench.real_and_modelled.calibration import Fit, fit
from workbench.real_and_modelled.compare import calibrating

LOADS = (0.3, 0.6, 0.85)  # of what the model says is served when all is asked at once
LINK = "pcie4-x16"  # which nothing goes over here; this machine's sheet names none
TIMES = 3  # that a load is served: a stall of the machine is in one of them, not in their median
LEAD = 0.3  # seconds until the first request may arrive
WITHIN = {"time to first token": 0.15, "time per output token": 0.10}  # of the real means


class CutShort(KeyboardInterrupt):
    """Interrupted after some of the loads; `rows` of those that were over."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__()
        self.rows = rows


@dataclass(frozen=True)
class Served:
    """Seconds of each request: to its first token, and of each token after that."""

    first_R: np.ndarray
    each_R: np.ndarray  # of answers of more than one token

    @classmethod
    def of(
        cls, arrival_R: np.ndarray, first_R: np.ndarray, ended_R: np.ndarray, answer_R: np.ndarray
    ) -> "Served":
        """From moments of each request."""
        more = answer_R > 1
        each_R = (ended_R - first_R)[more] / (answer_R[more] - 1)
        return cls(first_R - arrival_R, each_R)

    @property
    def means(self) -> dict[str, float]:
        """By the names of `WITHIN`."""
        return dict(
            zip(WITHIN, (float(self.first_R.mean()), float(self.each_R.mean())), strict=True)
        )


def usual(count: int) -> FleetConfig:
    """The shipped model, mixed lengths that its 512 positions hold, the router that looks at
    load."""
    lengths = (
        Lengths(median=64, spread=0.8, longest=256),
        Lengths(median=48, spread=0.8, longest=256),
    )
    workload = Poisson(count=count, rate=0.0, prompt=lengths[0], output=lengths[1])
    engine = InferenceConfig(workload=workload, max_running=16)
    return FleetConfig(replicas=1, engine=engine, tokens=False)


def compare(
    config: FleetConfig, say: Callable[[str], None], fresh: bool = True
) -> list[dict[str, Any]]:
    """A row for each load and latency. `config.engine` is real. Raises CutShort where an interrupt
    comes between the loads or in one."""
    say("measuring this machine")
    measure(refresh=fresh)
    engine = config.engine
    with engine_process.engines(engine, config.replicas) as engines:
        say(f"calibrating: {config.replicas} engines at once on other requests")
        _taken(config, engines, 0.0)  # kernels of every batch compile or load here
        taken = _taken(config, engines, 0.0)
        rate = _capacity(modelled(config, _fit(engine, taken)))
        real, cut = [], False
        try:
            for load in LOADS:
                asks = f"{engine.workload.count} requests at {load:.0%} of {rate:.3g} a second"
                say(f"{asks}, {TIMES} times")
                at, served = update(config, {"engine.workload.rate": load * rate}), []
                for _ in range(TIMES):
                    taken += _taken(config, engines, load * rate)
                    served.append(asked(at, engines))
                real.append(served)
            taken += _taken(config, engines, 0.0)
        except KeyboardInterrupt:
            if not real:
                raise
            cut = True
    say("the modelled fleet")
    rows = _rows(config, _fit(engine, taken), rate, real)
    if cut:
        raise CutShort(rows)
    return rows


def _rows(
    config: FleetConfig, found: Fit, rate: float, real: Sequence[Sequence[Served]]
) -> list[dict[str, Any]]:
    """Of the loads that were served, each `TIMES` times: errors are of the median one."""
    rows = []
    for load, served in zip(LOADS, real, strict=False):
        at = update(config, {"engine.workload.rate": load * rate})
        told = simulated(modelled(at, found)).means
        for name, most in WITHIN.items():
            means = [each.means[name] for each in served]
            middle = float(np.median(means))
            rows.append({
                "load": load, "measure": name, "real": middle, "least": min(means),
                "most": max(means), "modelled": told[name], "error": told[name] / middle - 1,
                "within": most,
            })  # fmt: skip
    return rows


def table_of(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The rows as text, under a head."""
    head = ("load", "mean", "real", "least", "most", "modelled", "error", "asked")
    return [head, *(
        (
            f"{row['load']:.0%}", row["measure"],
            *(f"{row[name] * 1e3:.3g} ms" for name in ("real", "least", "most", "modelled")),
            f"{row['error']:+.1%}", f"within {row['within']:.0%}",
        )
        for row in rows
    )]  # fmt: skip


def modelled(config: FleetConfig, found: Fit) -> FleetConfig:
    """The same fleet, its engines modelled as they were measured here."""
    executor = Modelled(device=THIS_MACHINE, **found.knobs)
    engine = config.engine.model_copy(update={"executor": executor})
    return config.model_copy(update={"engine": engine, "link": LINK})


def simulated(config: FleetConfig) -> Served:
    """What a modelled fleet makes of its workload. Raises BadInput where it refuses any of it: a
    real engine would end such an answer early, and no two would be compared."""
    built, log = build(config), Log()
    fleet = Fleet(config, built, log.emit)
    serve(fleet, streamed(config, built).requests, Live(log))
    if fleet.refused:
        raise BadInput(
            f"workload: {fleet.refused} of {len(fleet.rows)} requests are more than a replica "
            f"takes ({built.context} tokens of the model): ask for shorter ones"
        )
    told = table(fleet.rows)
    return Served.of(told[ARRIVAL], told[FIRST], told[ENDED], told[ANSWER])


def asked(config: FleetConfig, engines: Sequence[engine_process.EngineProcess]) -> Served:
    """What real engines make of it, each request sent by the fleet's router as it arrives; its time
    counts from when it was sent."""
    requests = list(streamed(config, build(modelled(config, _bare()))).requests)
    messages = [
        engine_process.message(
            what="add", number=number, prompt=one.prompt.tolist(), answer=one.sampling.max_tokens
        )
        for number, one in enumerate(requests)
    ]
    loads = [Load(number, lambda prompt: 0) for number in range(len(engines))]
    pipes = {one.pipe: (one, load) for one, load in zip(engines, loads, strict=True)}
    for one in engines:  # the same prompts at another load are not to be found again
        one.send(engine_process.message(what=engine_process.FORGET))
    arrival_R = np.array([request.arrival for request in requests])
    moments = {name: np.full(len(requests), np.nan) for name in ("sent", "first", "ended")}
    begin, sent, over = time.monotonic() + LEAD, 0, 0
    while over < len(requests):
        now = time.monotonic() - begin
        while sent < len(requests) and arrival_R[sent] <= now:
            load = _route(config.router, requests[sent], sent, config.engine.seed, now, loads)
            moments["sent"][sent] = time.monotonic() - begin
            engines[load.number].send(messages[sent])
            sent += 1
        left = arrival_R[sent] - (time.monotonic() - begin) if sent < len(requests) else None
        for pipe in engine_process.heard([*pipes], left if left is None else max(0.0, left)):
            engine, load = pipes[pipe]
            said = engine.receive()
            moments[said["what"]][said["number"]] = said["at"] - begin
            if said["what"] == engine_process.FIRST:
                load.tokens -= len(requests[said["number"]].prompt)
            else:
                load.requests -= 1
                over += 1
    answer_R = np.array([request.sampling.max_tokens for request in requests])
    return Served.of(moments["sent"], moments["first"], moments["ended"], answer_R)


def _route(
    router: Router, request: Request, number: int, seed: int, now: float, loads: list[Load]
) -> Load:
    load = router.route(Asked(number, request.prompt, seed, now), loads)
    load.requests += 1
    load.tokens += len(request.prompt)
    return load


def _taken(
    config: FleetConfig, engines: Sequence[engine_process.EngineProcess], rate: float
) -> list[Any]:
    """Steps of all engines on other requests, so many a second (0: all at once), sent as those that
    are compared."""
    other = calibrating(config.engine, rate, config.replicas)
    asked(config.model_copy(update={"engine": other}), engines)
    return [step for one in engines for step in one.taken()]


def _fit(config: InferenceConfig, taken: list[Any]) -> Fit:
    device = measure()
    return fit(taken, StepCost(find(config.model).config, device.at_best(), config.dtype))


def _bare() -> Fit:
    """No calibration, where only requests are asked for."""
    return Fit({}, 0, 0.0)


def _capacity(config: FleetConfig) -> float:
    """Requests a second where all is asked at once."""
    at_once = update(config, {"engine.workload.rate": 0.0})
    built, log = build(at_once), Log()
    fleet = Fleet(at_once, built, log.emit)
    serve(fleet, streamed(at_once, built).requests, Live(log))
    return len(fleet.rows) / fleet.timeline.now
