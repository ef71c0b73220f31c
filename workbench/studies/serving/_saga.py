"""SAGA's claims: settings they are checked under and what each check runs."""

from dataclasses import replace

import numpy as np

from engine.core.config import update
from engine.core.log import Log
from engine.fleet.agents import TASK_COLUMNS, TASKS, AgentsConfig
from engine.fleet.measure import columns
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5
FLEET = 16  # replicas: the paper's 64 GPUs, four to each (by a public summary of the paper)
JUDGED = 4  # of them where tenants are judged, whose load takes most steps to play
# Seconds a step beside its pauses, in the mean of its task: 67.3% of all tasks keep to these on the
# least loaded of four replicas without a cache, as of the paper's vLLM (draws 100 to 104).
STEPS = {"coding": 5.4, "browsing": 8.0}
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
CACHED = {"caches alone": RIVALS["caches alone"]}
SMALL: Changes = {"tokens": False}
RATE = 0.6  # tasks a second of a replica that fill it, and more
CALM = 0.16  # four fifths of what it answers (half of those that came at once, draws 100 to 102)
# An H100's own room for 16 GB of weights, and tasks that fill it.
ROOM: Changes = {
    "tokens": False,
    "engine.pages": 7000,
    "engine.workload.count": 100,
    "engine.workload.rate": 2 * RATE,
    "engine.workload.pause": 3.0,
    "engine.workload.output": {"median": 150, "spread": 0.5, "longest": 800},
}
# Assumed: like SWE-bench's, long tasks and tests' pauses; like WebArena's, few and large pages.
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
ALONE = {"ours": ORDERS["ours"]}
FLOODED: Changes = {"engine.workload.flood": 0.7}
TASKS_OF = {"coding": 500, "browsing": 812}  # of the paper's fleet
# Of 4,096 tokens that wait on a replica before others steal from it, of four times as many each
# time, and of no stealing (which is as good): tasks ended soonest of draws 100 to 102, of either
# workload on two replicas and of coding on eight. So of requests where none weighs the load.
PATIENT: Changes = {"router.behind_by": 262_144}


def settings(config: AgentsConfig, fast: bool) -> dict[str, AgentsConfig]:
    """By workload; in small the study's own, fewer tasks of it."""
    if fast:
        return {"small": update(config, SMALL)}
    return {name: update(config, changes) for name, changes in LOADS.items()}


def fleets(config: AgentsConfig, replicas: int) -> dict[str, AgentsConfig]:
    """The full workloads on so many replicas, each with as many tasks as one of the paper's."""
    patient = PATIENT if config.router.kind == "work_stealing" else {}
    return {
        name: update(config, {
            **changes, **patient, "replicas": replicas,
            "engine.workload.count": round(TASKS_OF[name] * replicas / FLEET),
            "engine.workload.rate": RATE * replicas,
        })
        for name, changes in LOADS.items()
    }  # fmt: skip


def tenanted(config: AgentsConfig, replicas: int) -> dict[str, AgentsConfig]:
    """The same of ten tenants, one of whom floods the fleet, at four fifths of what it answers."""
    shared = {**FLOODED, "engine.workload.tenants": 10, "engine.workload.rate": CALM * replicas}
    return {name: update(one, shared) for name, one in fleets(config, replicas).items()}


def drawn(config: AgentsConfig, fast: bool) -> list[AgentsConfig]:
    """Several draws of it; one in small."""
    first = config.engine.seed
    return [update(config, {"engine.seed": first + each}) for each in range(1 if fast else SEEDS)]


def ratio(ours: list[float], theirs: list[float]) -> Figure:
    """Ours over theirs, paired."""
    one = len(ours) == 1
    return Figure.exact(ours[0] / theirs[0], "×") if one else Figure.ratio(ours, theirs)


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
    return float((tasks(log)["ended"] - tasks(log)["arrival"]).mean())


def missing(loads: dict[str, AgentsConfig], run: RunConfig, fast: bool) -> Outcome:
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


def quicker(
    loads: dict[str, AgentsConfig], run: RunConfig, fast: bool, rivals: dict[str, Changes]
) -> Outcome:
    """Time of a task under request-level scheduling over ours, beside the strongest rival on the
    workload where that is less."""
    found: dict[str, dict[str, Figure]] = {}
    for load, one in loads.items():
        seeds = drawn(one, fast)
        ours = [lasted(run(each)) for each in seeds]
        found[load] = {
            name: ratio([lasted(run(update(each, changes))) for each in seeds], ours)
            for name, changes in rivals.items()
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
    if fast:
        loads = settings(update(config, FLOODED), True)
        return keeping(loads, {"small": SMALL_STEP}, run, True, ALONE)
    return keeping(tenanted(config, JUDGED), STEPS, run, False, ORDERS)


def shares(values: list[float]) -> Figure:
    """The mean of shares, whose interval ends where shares do."""
    if len(values) == 1:
        return Figure.exact(values[0])
    mean = Figure.mean(values)
    return replace(mean, low=max(mean.low, 0.0), high=min(mean.high, 1.0))


def keeping(
    loads: dict[str, AgentsConfig], steps: dict[str, float], run: RunConfig, fast: bool,
    orders: dict[str, Changes],
) -> Outcome:  # fmt: skip
    """The same of given workloads, their seconds a step and orders."""
    found = dict[str, dict[str, Figure]]()
    for load, one in loads.items():
        found[load] = {
            name: shares(
                [kept(run(update(draw, changes)), steps[load]) for draw in drawn(one, fast)]
            )
            for name, changes in orders.items()
        }
    worst = min((of["ours"] for of in found.values()), key=lambda one: one.value)
    return Outcome(
        "99.2% of the other tenants' tasks keep the objective (95% interval)",
        "; ".join(
            f"{load}: " + ", ".join(
                f"{name} {each.value:.3f} [{each.low:.3f}, {each.high:.3f}]"
                for name, each in of.items()
            )
            for load, of in found.items()
        )
        + f"; n = {worst.n}",
        worst.low >= 0.992,
        figure=worst,
        needed=0.992,
    )  # fmt: skip


def near_optimum(config: AgentsConfig, run: RunConfig, fast: bool) -> Outcome:
    """`missing` on two replicas, or on small tasks."""
    return missing(settings(config, fast), run, fast)


def sooner(config: AgentsConfig, run: RunConfig, fast: bool) -> Outcome:
    """`quicker` on small tasks, or on the paper's fleet."""
    loads = settings(config, True) if fast else fleets(config, FLEET)
    return quicker(loads, run, fast, RIVALS)
