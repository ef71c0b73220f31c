"""SAGA's claims: settings they are checked under and what each check runs."""

import numpy as np

from engine.core.config import update
from engine.core.log import Log
from engine.fleet.agents import TASK_COLUMNS, TASKS, AgentsConfig
from engine.fleet.measure import columns
from workbench.regime import At
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
STEP = 5.0  # seconds that a step may take beside its pauses, in the mean of its task; assumed
SMALL_STEP = 1.0  # of small tasks: set after small runs were seen, so that the break shows there
OFFLINE: Changes = {"foresight": "true"}
REQUESTS: Changes = {
    "engine.eviction": "lru", "engine.ordering": "fcfs", "fair": "none", "foresight": "graph",
}  # fmt: skip
RIVALS: dict[str, Changes] = {
    "caches and load": {**REQUESTS, "router": "prefix_aware"},
    "caches alone": {**REQUESTS, "router": "prefix_aware", "router.balance": 0.0},
    "least loaded": {**REQUESTS, "router": "least_loaded"},
}
SMALL: Changes = {"tokens": False}
# An H100's own room for 16 GB of weights, and tasks that fill it.
ROOM: Changes = {
    "tokens": False,
    "engine.pages": 7000,
    "engine.workload.count": 100,
    "engine.workload.rate": 1.2,
    "engine.workload.pause": 3.0,
    "engine.workload.output": {"median": 150, "spread": 0.5, "longest": 800},
}
# Assumed: like SWE-bench's, long tasks, some pauses of tests; like WebArena's, few and large pages.
LOADS: dict[str, Changes] = {
    "coding": {
        **ROOM,
        "engine.workload.steps": {"median": 12, "spread": 0.4, "longest": 40},
        "engine.workload.first": {"median": 6000, "spread": 0.4, "longest": 20_000},
        "engine.workload.observed": {"median": 1200, "spread": 0.8, "longest": 8000},
    },
    "browsing": {
        **ROOM,
        "engine.workload.pause": 1.0,
        "engine.workload.steps": {"median": 8, "spread": 0.4, "longest": 30},
        "engine.workload.first": {"median": 2000, "spread": 0.4, "longest": 8000},
        "engine.workload.observed": {"median": 3000, "spread": 0.6, "longest": 12_000},
    },
}
ORDERS: dict[str, Changes] = {
    "ours": {},
    "in order of arrival": {"engine.ordering": "fcfs"},
    "tokens shared fairly": {"engine.ordering": "fair_share"},
}
FLOODED: Changes = {"engine.workload.flood": 0.7}


def settings(config: AgentsConfig, fast: bool) -> dict[str, AgentsConfig]:
    """By workload; in small the study's own, fewer tasks of it."""
    if fast:
        return {"small": update(config, SMALL)}
    return {name: update(config, changes) for name, changes in LOADS.items()}


def drawn(config: AgentsConfig, fast: bool) -> list[AgentsConfig]:
    """Several draws of it; one in small."""
    first = config.engine.seed
    return [update(config, {"engine.seed": first + each}) for each in range(1 if fast else SEEDS)]


def ratio(ours: list[float], theirs: list[float]) -> Figure:
    """Ours over theirs, paired."""
    if len(ours) == 1:
        return Figure.exact(ours[0] / theirs[0], "×")
    return Figure.ratio(ours, theirs)


def told(figures: dict[str, Figure]) -> str:
    """Ratios by name, each with its interval."""
    return "; ".join(
        f"{name} {each.value:.2f}× [{each.low:.2f}, {each.high:.2f}]"
        for name, each in figures.items()
    )


def missed(log: Log) -> float:
    """Prompt tokens that no cache held."""
    return float(columns(log)["computed"].sum())


def tasks(log: Log) -> dict[str, np.ndarray]:
    """The table of tasks by column."""
    return dict(zip(TASK_COLUMNS, log.blobs[TASKS], strict=True))


def lasted(log: Log) -> float:
    """Mean seconds of a task, its pauses with them."""
    found = tasks(log)
    return float((found["ended"] - found["arrival"]).mean())


def _near_optimum(loads: dict[str, AgentsConfig], run: RunConfig, fast: bool) -> Outcome:
    """Tokens missed over those that Bélády's rule misses, which knows every pause, on the workload
    where that is more; on each less than those of least recently used, which comes within the
    paper's bound, too, where memory is not scarce enough."""
    found: dict[str, Figure] = {}
    recent: dict[str, Figure] = {}
    less: dict[str, Figure] = {}
    for name, one in loads.items():
        ours, best, lru = [], [], []
        for each in drawn(one, fast):
            ours.append(missed(run(each)))
            best.append(missed(run(update(each, OFFLINE))))
            lru.append(missed(run(update(each, {"engine.eviction": "lru"}))))
        found[name], recent[name], less[name] = (
            ratio(ours, best), ratio(lru, best), ratio(ours, lru)
        )  # fmt: skip
    worst = max(found.values(), key=lambda each: each.value)
    return Outcome(
        "at most 1.31 times what Bélády's rule misses, and less than least recently used (95% "
        "interval)",
        f"misses over Bélády's rule: {told(found)}; least recently used: {told(recent)}; ours over "
        f"that: {told(less)}; n = {worst.n}",
        worst.high <= 1.31 and max(each.high for each in less.values()) < 1,
        figure=worst,
        needed=1.31,
    )


def _sooner(loads: dict[str, AgentsConfig], run: RunConfig, fast: bool) -> Outcome:
    """Time of a task under request-level scheduling over ours, beside the strongest rival on the
    workload where that is less."""
    found: dict[str, dict[str, Figure]] = {}
    for load, one in loads.items():
        seeds = drawn(one, fast)
        ours = [lasted(run(each)) for each in seeds]
        found[load] = {
            name: ratio([lasted(run(update(each, changes))) for each in seeds], ours)
            for name, changes in RIVALS.items()
        }
    least = min((each for of in found.values() for each in of.values()), key=lambda one: one.value)
    return Outcome(
        "tasks end sooner than by any request-level scheduling (95% interval)",
        "time of a task over ours: "
        + "; ".join(f"{load}: {told(ratios)}" for load, ratios in found.items())
        + f"; n = {least.n}",
        least.low > 1,
        figure=least,
        needed=1.0,
    )


def kept(log: Log, step: float) -> float:
    """Share of the tasks, but for the first tenant's, whose steps take `step` s in the mean."""
    found = tasks(log)
    others = found["tenant"] > 0
    own = (found["ended"] - found["arrival"] - found["paused"]) / found["steps"]
    return float((own[others] <= step).mean())


def attained(config: AgentsConfig, run: RunConfig, fast: bool) -> Outcome:
    """Share of tasks within the objective while another tenant floods the fleet, on the workload
    where that is less; in order of arrival and by requests' fair share beside it."""
    step = SMALL_STEP if fast else STEP
    return _attained(settings(update(config, FLOODED), fast), step, run, fast, fast)


def _attained(
    loads: dict[str, AgentsConfig], step: float, run: RunConfig, fast: bool, alone: bool
) -> Outcome:
    """The same of given workloads and seconds a step; rivals where ours is not asked `alone`."""
    orders = {"ours": ORDERS["ours"]} if alone else ORDERS
    shares = dict[str, dict[str, Figure]]()
    for load, one in loads.items():
        shares[load] = {}
        for name, changes in orders.items():
            each = [kept(run(update(draw, changes)), step) for draw in drawn(one, fast)]
            shares[load][name] = Figure.exact(each[0]) if fast else Figure.mean(each)
    worst = min((of["ours"] for of in shares.values()), key=lambda each: each.value)
    return Outcome(
        "99.2% of the other tenants' tasks keep the objective (95% interval)",
        "; ".join(
            f"{load}: " + ", ".join(
                f"{name} {each.value:.3f} [{each.low:.3f}, {each.high:.3f}]"
                for name, each in of.items()
            )
            for load, of in shares.items()
        )
        + f"; n = {worst.n}",
        worst.low >= 0.992,
        figure=worst,
        needed=0.992,
    )  # fmt: skip


def near_optimum(config: AgentsConfig, run: RunConfig, fast: bool) -> Outcome:
    """`_near_optimum` on the workloads of that size."""
    return _near_optimum(settings(config, fast), run, fast)


def sooner(config: AgentsConfig, run: RunConfig, fast: bool) -> Outcome:
    """`_sooner` on the workloads of that size."""
    return _sooner(settings(config, fast), run, fast)


def near_optimum_at(config: AgentsConfig, spread: float, run: RunConfig, fast: bool) -> Outcome:
    """`near_optimum` on small tasks whose pauses scatter so."""
    loads = settings(update(config, {"engine.workload.spread": spread}), True)
    return _near_optimum(loads, run, fast)


def sooner_over(knob: str) -> At:
    """`sooner` on small tasks with `knob` at a value; all draws in full."""

    def at(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        given = int(value) if knob == "engine.pages" else value
        return _sooner(settings(update(config, {knob: given}), True), run, fast)

    return at


def attained_over(knob: str) -> At:
    """The share of others' tasks that keep the objective, of a full workload's draws (one in
    small), with a knob at some value: `objective` is seconds a step, `load` a part of the load."""

    def at(config: AgentsConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        rate = config.engine.workload.rate  # type: ignore[attr-defined]
        turned = {
            "objective": {}, "load": {"engine.workload.rate": rate * value},
            "flood": {"engine.workload.flood": value},
        }[knob]  # fmt: skip
        one = update(config, {**FLOODED, **turned})
        return _attained({"": one}, value if knob == "objective" else STEP, run, fast, True)

    return at
