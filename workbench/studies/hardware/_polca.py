"""POLCA's claims: settings they are checked under and what each check runs."""

import tomllib
from dataclasses import dataclass

import numpy as np

from engine.core.config import update
from engine.core.events import Mark
from engine.core.log import Log
from engine.core.paths import dataset
from engine.fleet.config import FleetConfig
from engine.fleet.life import FINISHED
from engine.fleet.measure import columns
from engine.fleet.power.power import Power
from engine.fleet.power_row import POWER
from engine.hardware import device
from workbench.hardest import hardest
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
UNTRIED = 1000  # seed of the first draw that a row is provisioned by: it is judged by others
PROVISIONING = 3  # such draws
ROW = 10  # replicas whose most power the row is given
IDLE = 0.2  # of the sheet's power
MEASURED = tomllib.loads(dataset("phase_power.toml").read_text())["a100-sxm-80gb"]
# Answers of the paper's model on its device, above idle, of what prompts draw there at most.
ANSWERS = round((MEASURED["bloom-176b-on-8"]["answers"] - IDLE) / (1 - IDLE), 2)
# The row, its delays a tenth of what we recall of the paper's, for a load that swings in seconds.
SHORT = {
    "budget": float(ROW), "memory": ANSWERS, "every": 0.2, "delay": 4.0, "brake_after": 0.5,
    "brake_for": 2.0,
}  # fmt: skip
ASKED = 0.3  # of them, added: the paper's
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # tried at full size
# Slowdowns allowed, the paper's as recalled: half of the requests, and 99 of 100, of each priority.
MOST = {"high": (1.01, 1.05), "low": (1.05, 1.50)}
ALIKE = "one_threshold"
OURS, GAIN = "two thresholds", "ours above no caps"
RIVALS = {"no caps": "brake_only", "one threshold for all": ALIKE, "clocks locked low": "locked"}
SPARED = {"one threshold": ALIKE, "the brake": "brake_only"}  # of urgent requests
ROWS = tuple(Power.model_fields)  # what a row is, whoever caps it
# Without a swing, lengths like those of Azure's trace: as many a second as shorter answers allow.
STEADY: Changes = {
    "engine.workload": {
        "kind": "poisson", "rate": 32.5, "count": 520,
        "prompt": {"median": 800, "spread": 0.9, "longest": 8000},
        "output": {"median": 130, "spread": 0.8, "longest": 1000},
    }
}  # fmt: skip
LOADS: dict[str, Changes] = {"a load that swings": {}, "a steady one": STEADY}
PEAK = 0.79  # of its budget, the highest reading of the paper's production rows, as recalled
# What reading memory may draw, of what computing does: from about what was measured of an H200's
# answers (137 to 300 of 700 W, arXiv 2605.11999) to as much. What is ours lies inside.
MEMORY = (0.25, 1.0)


@dataclass(frozen=True)
class Seen:
    """What came of one row: end-to-end seconds by priority, its power, and how often it braked."""

    high: np.ndarray
    low: np.ndarray
    watts: np.ndarray  # of each reading while requests were under way
    brakes: int

    def slowdowns(self, free: "Seen") -> dict[str, tuple[float, float]]:
        """By priority: of half, and of 99 in 100 requests, beside the same row without limit."""
        return {
            name: (
                float(np.quantile(ours, 0.5) / np.quantile(theirs, 0.5)),
                float(np.quantile(ours, 0.99) / np.quantile(theirs, 0.99)),
            )
            for name, ours, theirs in (
                ("high", self.high, free.high), ("low", self.low, free.low),
            )
        }  # fmt: skip


def seen(config: FleetConfig, log: Log) -> Seen:
    """What a finished run came to."""
    told = columns(log)
    done = told["state"] == FINISHED
    lasted = told["ended"] - told["arrival"]
    low = np.array([config.router.low_priority(int(each)) for each in told["prefill"]])
    time, watts = log.blobs[POWER][:2]
    brakes = sum(mark.name == "brake" for mark in log.of(Mark))
    last = float(told["arrival"].max())
    return Seen(lasted[done & ~low], lasted[done & low], watts[time <= last], brakes)


def ruled(config: FleetConfig, kind: str, **changes: float) -> FleetConfig:
    """The same row, and another power policy."""
    row = {name: getattr(config.power, name) for name in ROWS}
    return update(config, {"power": {**row, **changes, "kind": kind}})


def unlimited(config: FleetConfig) -> FleetConfig:
    """The same row, and nothing that slows anybody."""
    return ruled(config, "brake_only", brake_clock=1.0)


def row(config: FleetConfig, added: float, seed: int) -> FleetConfig:
    """`ROW` replicas and a share more under the same budget; each has as much to do."""
    replicas = round(ROW * (1 + added))
    changes: dict[str, object] = {"replicas": replicas, "engine.seed": config.engine.seed + seed}
    work = config.engine.workload
    grown = replicas / config.replicas
    changes["engine.workload.rate"] = work.rate * grown  # type: ignore[attr-defined]
    changes["engine.workload.count"] = round(work.count * grown)  # type: ignore[attr-defined]
    return update(config, changes)


def fitted(config: FleetConfig, run: RunConfig, fast: bool, share: float = PEAK) -> FleetConfig:
    """The same row given so much power that its highest readings are that share of it, as of the
    paper's production rows: by draws by which nothing is judged, in small by one."""
    draws = range(UNTRIED, UNTRIED + (1 if fast else PROVISIONING))
    drawn = float(np.mean([peak(config, run, seed) for seed in draws]))
    return update(config, {"power.budget": config.power.budget * drawn / share})


def of(config: FleetConfig, run: RunConfig) -> Seen:
    """What a row comes to."""
    return seen(config, run(config))


def kept(config: FleetConfig, run: RunConfig) -> tuple[bool, str]:
    """Whether a row keeps all slowdowns without a brake, and what was seen."""
    ours, free = of(config, run), of(unlimited(config), run)
    slower = ours.slowdowns(free)
    good = ours.brakes == 0 and all(
        half <= MOST[name][0] and tail <= MOST[name][1] for name, (half, tail) in slower.items()
    )
    told = ", ".join(f"{name} {half:.3f}× and {tail:.3f}×" for name, (half, tail) in slower.items())
    return good, f"{ours.brakes} brakes; {told}"


def most_added(config: FleetConfig, run: RunConfig, seed: int) -> float:
    """The largest share of replicas, of `LEVELS`, up to which every one is kept."""
    best = 0.0
    for added in LEVELS:
        if not kept(row(config, added, seed), run)[0]:
            break
        best = added
    return best


def thirty_more(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """Replicas that fit in more under one budget, on the workload where they are fewer: in small
    30% or none, of one draw of the first."""
    if fast:
        return roomy(fitted(config, run, fast), run, fast)
    found = {name: room(fitted(one, run, fast), run) for name, one in loads(config).items()}
    least = min(found.values(), key=lambda rules: rules[OURS].value)
    return Outcome(
        "30% more replicas within the slowdowns (all of the 95% interval), and more than the "
        "brake alone leaves room for, draw by draw",
        "; ".join(
            f"{workload}: " + ", ".join(f"{n} {said(figure)}" for n, figure in rules.items())
            for workload, rules in found.items()
        )
        + f", n = {SEEDS}",
        least[OURS].low >= ASKED and least[GAIN].low > 0,
        figure=least[OURS],
        needed=ASKED,
    )


def room(config: FleetConfig, run: RunConfig) -> dict[str, Figure]:
    """The share of replicas more by rule, of each draw, and by how much ours is above the brake's
    alone."""
    drawn: dict[str, list[float]] = {}
    for name, kind in {OURS: config.power.kind, **RIVALS}.items():
        one = config if kind == config.power.kind else ruled(config, kind)
        drawn[name] = [most_added(one, run, seed) for seed in range(SEEDS)]
    found = {name: Figure.mean(values, "%") for name, values in drawn.items()}
    return {**found, GAIN: Figure.mean(np.subtract(drawn[OURS], drawn["no caps"]), "%")}


def said(figure: Figure) -> str:
    """A share with its interval."""
    return f"{figure.value:.0%} [{figure.low:.0%}, {figure.high:.0%}]"


def loads(config: FleetConfig) -> dict[str, FleetConfig]:
    """The row under both loads."""
    return {name: update(config, changes) for name, changes in LOADS.items()}


def headroom(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """`filled` of the study's load and, at full size, of the steady one, by the higher."""
    if fast:
        return filled(config, run, fast)
    return hardest(loads(config), lambda one: filled(one, run, fast), better="less")


def filled(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The highest reading of a row of `ROW` replicas over what it is provisioned for; the interval
    is over draws, and over all that reading memory may draw."""
    own = peaks(config, run, fast)
    ends = [peak(ruled(config, config.power.kind, memory=memory), run) for memory in MEMORY]
    figure = Figure(own.value, min(own.low, *ends), max(own.high, *ends), "%", own.n)
    return Outcome(
        f"the row's highest reading at most {PEAK:.0%} of what it is provisioned for, whatever "
        "reading memory draws",
        f"{said(own)} of it, n = {own.n}; where reading memory draws {MEMORY[0]:g} and "
        f"{MEMORY[1]:g} of what computing does {ends[0]:.0%} and {ends[1]:.0%}",
        figure.high <= PEAK,
        figure=figure,
        needed=PEAK,
    )


def peaks(config: FleetConfig, run: RunConfig, fast: bool) -> Figure:
    """The highest reading over the budget: its mean over draws, in small of one."""
    found = [peak(config, run, seed) for seed in range(1 if fast else SEEDS)]
    return Figure.exact(found[0], "%") if fast else Figure.mean(found, "%")


def peak(config: FleetConfig, run: RunConfig, seed: int = 0) -> float:
    """The highest reading of a row that nothing slows, over its budget."""
    one = unlimited(row(config, 0.0, seed))
    return float(of(one, run).watts.max()) / provisioned(one)


def provisioned(config: FleetConfig) -> float:
    """Watts of a row's budget."""
    sheet = device(config.engine.executor.device)  # type: ignore[attr-defined]
    assert sheet.tdp is not None
    return config.power.budget * sheet.tdp


def spared(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """`sparing` of the load where it is less; in small of the study's own, one draw."""
    if fast:
        return sparing(config, run, fast)
    return hardest(loads(config), lambda one: sparing(one, run, fast))


def sparing(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """At 30% more: the mean time of requests of high priority, under one threshold for all over
    ours, and under the brake alone. The figure is beside the stronger of them."""
    config = fitted(config, run, fast)
    ours, low = list[float](), list[float]()
    theirs: dict[str, list[float]] = {name: [] for name in SPARED}
    for seed in range(1 if fast else SEEDS):
        one = row(config, ASKED, seed)
        mine = of(one, run)
        ours.append(float(np.mean(mine.high)))
        for name, kind in SPARED.items():
            other = of(ruled(one, kind), run)
            theirs[name].append(float(np.mean(other.high)))
            low.append(float(np.mean(mine.low) / np.mean(other.low)))
    ratios = {
        name: Figure.exact(times[0] / ours[0], "×") if fast else Figure.ratio(times, ours)
        for name, times in theirs.items()
    }
    ratio = min(ratios.values(), key=lambda each: each.value)
    told = ", ".join(
        f"{r.value:.4f}× [{r.low:.4f}, {r.high:.4f}] as soon as by {n}" for n, r in ratios.items()
    )
    return Outcome(
        "requests of high priority are answered sooner than where all are capped alike, and than "
        "where nobody is",
        f"{told}; those of low priority take {np.mean(low):.4f}× the time, n = {ratio.n}",
        ratio.low > 1,
        figure=ratio,
        needed=1.0,
    )


def roomy(config: FleetConfig, run: RunConfig, fast: bool) -> Outcome:
    """The replicas that fit in more, of five draws; in small 30% or none, of one."""
    if fast:
        good, told = kept(row(config, ASKED, 0), run)
        figure = Figure.exact(ASKED if good else 0.0, "%")
    else:
        figure = Figure.mean([most_added(config, run, seed) for seed in range(SEEDS)], "%")
        told = f"{said(figure)}, n = {figure.n}"
    enough = figure.low >= ASKED
    return Outcome(
        "30% more replicas within the slowdowns, without a brake",
        told,
        enough,
        figure=figure,
        needed=ASKED,
    )
