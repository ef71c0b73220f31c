"""DualMap's claims: settings they are checked under and what each check runs."""

from typing import Any, TypeAlias

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

Load: TypeAlias = tuple[str, float, float]  # a knob, and the range that is searched

SEEDS = 5
OBJECTIVE = 5.0  # the paper's seconds to the first token, which nine in ten requests keep
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
# Where capacity is asked: the paper's instances, model and hashed blocks, as a public reading of it
# has them; its Ascend 910B has no sheet here, and its million cached tokens do not fit beside it.
PAPERS: Changes = {
    "replicas": 8,
    "engine.model": "qwen2.5-7b",
    "engine.executor.device": "ascend-910c-die",
    "engine.pages": 12_000,
}
SPEED = 16_000.0  # prompt tokens that one such die computes in a second (16,284 of 8,596 alone)
# Prompts as long as its agents' (8,596 tokens, answers 182), of which 59% were asked before.
AGENTS: Changes = {
    "per_group": 10,
    "prefix": {"median": 5200, "spread": 0.4, "longest": 16_000},
    "suffix": {"median": 2600, "spread": 0.5, "longest": 10_000},
    "output": {"median": 160, "spread": 0.5, "longest": 800},
}
BEGINNINGS = 10  # of drawn prompts for each replica; of maps and the small check `FEWER`
FEWER = 5
TALKED = 4645 / 12_035  # the trace's mean prompt over that of the paper's conversations
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


def papers(config: FleetConfig, objective: float = OBJECTIVE) -> FleetConfig:
    """In the paper's setting, under some objective; two blocks are hashed, or more."""
    changes = dict(PAPERS)
    if config.router.kind == "dual_map":
        changes |= {"router.objective": objective, "router.speed": SPEED}
        changes["router.beginning"] = max(config.router.beginning, 2 * SYSTEM_PROMPT)
    return update(quiet(config), changes)


def most_served(
    config: FleetConfig, run: RunConfig, load: Load, objective: float, steps: int
) -> float:
    """The highest load at which nine in ten first tokens keep the objective; the lowest of its
    range where none does."""
    knob, low, high = load

    def keeps(value: float) -> bool:
        asked = update(config, {knob: value})
        found = served(run(asked), asked)
        return found.finished == found.requests and found.ttft.p90 <= objective

    return most(keeps, low, high, steps, least=low)


def _gains(
    config: FleetConfig, run: RunConfig, load: Load, objective: float, draws: int
) -> dict[str, Figure]:
    """Requests served within the objective over those of each rival."""
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in RIVALS}
    steps = 3 if draws == 1 else 6
    for seed in range(draws):
        one = update(config, {"engine.seed": config.engine.seed + seed})
        ours.append(most_served(one, run, load, objective, steps))
        for name, changes in RIVALS.items():
            theirs[name].append(most_served(update(one, changes), run, load, objective, steps))
    if draws == 1:
        return {name: Figure.exact(ours[0] / rates[0], "×") for name, rates in theirs.items()}
    return {name: Figure.ratio(ours, rates) for name, rates in theirs.items()}


def agents(config: FleetConfig, beginnings: int) -> FleetConfig:
    """Drawn prompts as long as the paper's agents', so many beginnings for each replica."""
    asked = {f"engine.workload.{name}": value for name, value in AGENTS.items()}
    return update(config, {**asked, "engine.workload.groups": beginnings * config.replicas})


def drawn_gains(
    config: FleetConfig, run: RunConfig, fast: bool, objective: float = OBJECTIVE,
    beginnings: int = FEWER,
) -> dict[str, Figure]:  # fmt: skip
    """Of prompts drawn over shared beginnings, between 1.25 and 10 requests a second a replica."""
    one = agents(config, beginnings)
    load = "engine.workload.rate", 1.25 * one.replicas, 10.0 * one.replicas
    return _gains(one, run, load, objective, 1 if fast else SEEDS)


def conversation_gains(config: FleetConfig, run: RunConfig) -> dict[str, Figure]:
    """Of the whole trace, 4 to 40 times as fast as it is (3 requests a second). Its prompts are
    shorter than the paper's, so the objective is as much tighter."""
    objective = TALKED * OBJECTIVE
    changes: dict[str, Any] = {"engine.workload": {**CONVERSATIONS["engine.workload"], "count": 0}}
    one = update(papers(config, objective), changes)
    return _gains(one, run, ("engine.workload.speed", 4.0, 40.0), objective, SEEDS)


def capacity(config: FleetConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Requests a second within one objective over those of other routers, on two workloads, beside
    the strongest router on the workload where that is closer to us. The small check asks the first
    workload alone, one draw of it."""
    many = FEWER if fast else BEGINNINGS
    traces = {DRAWN: drawn_gains(papers(config), run_config, fast, beginnings=many)}
    if not fast:
        traces[TALKS] = conversation_gains(config, run_config)
    return beside_strongest(traces)


def beside_strongest(traces: dict[str, dict[str, Figure]]) -> Outcome:
    """Ours over the strongest router's, on the workload where that is less."""
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
    """`capacity` on drawn prompts whose beginnings are asked for ever less evenly."""
    one = update(papers(config), {"engine.workload.skew": skew})
    return beside_strongest({DRAWN: drawn_gains(one, run, fast)})


def at_replicas(config: FleetConfig, count: float, run: RunConfig, fast: bool) -> Outcome:
    """The same of so many replicas, with as many more beginnings."""
    one = update(papers(config), {"replicas": int(count)})
    return beside_strongest({DRAWN: drawn_gains(one, run, fast)})


def at_objective(config: FleetConfig, objective: float, run: RunConfig, fast: bool) -> Outcome:
    """The same under another objective, which the router knows."""
    one = papers(config, objective)
    return beside_strongest({DRAWN: drawn_gains(one, run, fast, objective)})


def keeping_at(config: FleetConfig, rate: float, run: RunConfig, fast: bool) -> Outcome:
    """What the paper's factor is of: requests within the objective at one rate, over the strongest
    router's."""
    asked = {"engine.workload.rate": rate, "objective.ttft": OBJECTIVE, "objective.tpot": 1e6}
    one = update(agents(papers(config), FEWER), asked)
    draws = [update(one, {"engine.seed": one.engine.seed + n}) for n in range(1 if fast else SEEDS)]

    def kept(changes: Changes) -> list[float]:
        asked = [update(draw, changes) for draw in draws]
        return [max(served(run(each), each).good, 1e-3) for each in asked]

    ours = kept({})
    ratio = (lambda a, b: Figure.exact(a[0] / b[0], "×")) if fast else Figure.ratio
    return beside_strongest(
        {DRAWN: {name: ratio(ours, kept(each)) for name, each in RIVALS.items()}}
    )


def at_rate(config: FleetConfig, rate: float, run: RunConfig, fast: bool) -> Outcome:
    """`sooner` on drawn prompts, so many a second."""
    return sooner(update(config, {"engine.workload.rate": rate}), run, True)
