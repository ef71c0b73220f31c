"""DualMap's claims: settings they are checked under and what each check runs."""

import numpy as np

from engine.core.config import update
from engine.core.log import Log
from engine.fleet.config import FleetConfig
from engine.fleet.life import PREFILL
from engine.fleet.measure import served
from engine.fleet.run import REQUESTS
from engine.inference.workloads.workload import Source
from workbench.studies.serving._capacity import most
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
OBJECTIVE = 0.5  # seconds to the first token that nine in ten requests keep; assumed
BOTH = 120.0  # requests a second at which the nearer of two replicas is not enough
LEAST: Changes = {"router": "least_loaded"}
RIVALS: dict[str, Changes] = {
    "least loaded": LEAST,
    "caches and load": {"router": "prefix_aware"},
    "caches alone": {"router": "prefix_aware", "router.balance": 0.0},
}
# The shipped trace like Mooncake's: 250 conversations over one system prompt of 512 tokens.
CONVERSATIONS: Changes = {
    "engine.workload": {"kind": "trace", "file": "mooncake-like.jsonl", "count": 200},
    "engine.pages": 2000,
}
SYSTEM_PROMPT = 512
WORKS = DRAWN, TALKS = "drawn prompts", "conversations"
# Parts of it, in the middle of the speeds between which capacity is looked for.
PART, PARTS = {"engine.workload.count": 100, "engine.workload.speed": 8.0}, (0, 75, 150, 225, 300)


def quiet(config: FleetConfig) -> FleetConfig:
    """Without events of tokens."""
    return update(config, {"tokens": False})


def beginnings(config: FleetConfig) -> np.ndarray:
    """Of each request, by arrival: the number of its prompt's beginning."""
    engine = config.engine
    source = Source(vocab=1 << 15, context=1 << 20, sampling=engine.sampling)
    asked = sorted(engine.workload.requests(source, engine.seed), key=lambda r: r.arrival)
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(r.prompt[:64].tobytes(), len(known)) for r in asked])


def spread(config: FleetConfig, log: Log) -> int:
    """Most replicas that the requests of one beginning were computed on."""
    begins, place = beginnings(config), log.blobs[REQUESTS][PREFILL]
    return max(len(set(place[begins == each].tolist())) for each in np.unique(begins))


def two_places(config: FleetConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How many replicas the requests of one beginning meet, under a load that takes both."""
    one = update(quiet(config), {"engine.workload.rate": BOTH})
    most = spread(one, run_config(one))
    return Outcome(
        "equal beginnings meet two replicas, and no third",
        f"at most {most} of {one.replicas}",
        most == 2,
        figure=Figure.exact(most, "replicas"),
        needed=2.0,
    )


def sooner(config: FleetConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Mean times to first token of other routers over ours, same requests, beside the quickest; at
    full size of parts of the trace, too, on the workload where that is less."""
    draws = range(config.engine.seed, config.engine.seed + SEEDS)
    works = {DRAWN: [update(quiet(config), {"engine.seed": seed}) for seed in draws]}
    if not fast:
        works[TALKS] = [
            update(hashed_further(quiet(config)), {**PART, "engine.workload.first": first})
            for first in PARTS
        ]
    gains = {work: over_routers(configs, run_config) for work, configs in works.items()}
    strongest = min(
        (r for ratios in gains.values() for r in ratios.values()), key=lambda r: r.value
    )
    return Outcome(
        "first tokens sooner than by any other router (95% interval)",
        "time to first token over ours: "
        + "; ".join(f"{work}: {told(ratios)}" for work, ratios in gains.items())
        + f"; n = {strongest.n}",
        strongest.low > 1,
        figure=strongest,
        needed=1.0,
    )


def over_routers(configs: list[FleetConfig], run_config: RunConfig) -> dict[str, Figure]:
    """Each rival's mean time to first token over ours."""

    def first(changes: Changes) -> list[float]:
        asked = [update(one, changes) for one in configs]
        return [served(run_config(one), one).ttft.mean for one in asked]

    ours = first({})
    return {name: Figure.ratio(first(changes), ours) for name, changes in RIVALS.items()}


def hashed_further(config: FleetConfig) -> FleetConfig:
    """Of the trace like Mooncake's; what is hashed reaches beyond the system prompt, which all
    have."""
    changes = dict(CONVERSATIONS)
    if config.router.kind == "dual_map":
        changes["router.beginning"] = max(config.router.beginning, 2 * SYSTEM_PROMPT)
    return update(config, changes)


def told(ratios: dict[str, Figure]) -> str:
    """Ratios by rival, each with its interval."""
    return "; ".join(
        f"{name} {ratio.value:.2f}× [{ratio.low:.2f}, {ratio.high:.2f}]"
        for name, ratio in ratios.items()
    )


def most_served(
    config: FleetConfig, run: RunConfig, load: str, low: float, high: float, steps: int
) -> float:
    """The highest `load` (a knob) at which nine in ten first tokens keep the objective; `low` where
    none between `low` and `high` does."""

    def keeps(value: float) -> bool:
        asked = update(config, {load: value})
        found = served(run(asked), asked)
        return found.finished == found.requests and found.ttft.p90 <= OBJECTIVE

    return most(keeps, low, high, steps, least=low)


def _gains(
    config: FleetConfig, run: RunConfig, load: str, low: float, high: float, fast: bool
) -> dict[str, Figure]:
    """Requests served within the objective over those of each rival, of several draws."""
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in RIVALS}
    for seed in range(1 if fast else SEEDS):
        one = update(config, {"engine.seed": config.engine.seed + seed})
        searched = load, low, high, 3 if fast else 5
        ours.append(most_served(one, run, *searched))
        for name, changes in RIVALS.items():
            theirs[name].append(most_served(update(one, changes), run, *searched))
    if fast:
        return {name: Figure.exact(ours[0] / rates[0], "×") for name, rates in theirs.items()}
    return {name: Figure.ratio(ours, rates) for name, rates in theirs.items()}


def drawn_gains(config: FleetConfig, run: RunConfig, fast: bool) -> dict[str, Figure]:
    """Of prompts drawn over shared beginnings, between 20 and 640 requests a second."""
    one = quiet(config) if fast else update(quiet(config), {"engine.workload.per_group": 10})
    return _gains(one, run, "engine.workload.rate", 20.0, 640.0, fast)


def conversation_gains(config: FleetConfig, run: RunConfig, fast: bool) -> dict[str, Figure]:
    """Of the trace, 2 to 32 times as fast as it is (3 requests a second)."""
    return _gains(hashed_further(quiet(config)), run, "engine.workload.speed", 2.0, 32.0, fast)


def capacity(config: FleetConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Requests a second within one objective over those of other routers, on two workloads, beside
    the strongest router on the workload where that is closer to us. The small check asks the first
    workload alone, one draw of it."""
    traces = {DRAWN: drawn_gains(config, run_config, fast)}
    if not fast:
        traces[TALKS] = conversation_gains(config, run_config, fast)
    figure = min(
        (ratio for gains in traces.values() for ratio in gains.values()),
        key=lambda ratio: ratio.value,
    )
    return Outcome(
        "more requests a second than by any other router (95% interval)",
        "; ".join(f"{name}: {told(gains)}" for name, gains in traces.items()) + f"; n = {figure.n}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def at_skew(config: FleetConfig, skew: float, run: RunConfig, fast: bool) -> Outcome:
    """`capacity` on drawn prompts of one draw, whose beginnings are asked for ever less evenly."""
    return capacity(update(config, {"engine.workload.skew": skew}), run, True)


def at_rate(config: FleetConfig, rate: float, run: RunConfig, fast: bool) -> Outcome:
    """`sooner` on drawn prompts, so many a second."""
    return sooner(update(config, {"engine.workload.rate": rate}), run, True)
