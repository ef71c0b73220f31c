"""Claims on gradually revealed jobs: instances they are checked on and what each check runs."""

from collections.abc import Callable

import numpy as np

from engine.core.config import update
from engine.fleet.flow_time.run import FLOWS, SHAPE, FlowTimeConfig
from workbench.study import Changes, Figure, Outcome, RunConfig

SEEDS = 5, 20  # of the small and of the full setting
BLIND = {"least attained": "least_attained", "round robin": "round_robin", "fcfs": "first_come"}
LOADS, SPREADS = (0.0, 0.7, 0.95, 1.3), (1.0, 2.5)
OPERATIONS = 2, 4, 16
WORKS = DRAWN, TESTED = "drawn", "tested"
DRIVEN = 1.5  # times the optimum: half of the way to the paper's two
OPERATION_LEVEL: Changes = {"order": "operation_srpt"}


def ratio(config: FlowTimeConfig, run: RunConfig) -> tuple[float, int]:
    """Total flow time over the optimum's, and the instance's m1 times m2."""
    log = run(config)
    ours, best = log.blobs[FLOWS].sum(1)
    _, chunks, inside = log.blobs[SHAPE]
    return float(ours / best), int(chunks * inside)


def drawn(config: FlowTimeConfig, seed: int, jobs: Changes) -> FlowTimeConfig:
    """The same order on other jobs."""
    return update(config, {"seed": config.seed + seed, "jobs": jobs})


def unlucky(fast: bool) -> Changes:
    """The adversary of tests."""
    return {"kind": "unlucky", "jobs": 15 if fast else 60, "stream": 30.0 if fast else 120.0}


def tested(config: FlowTimeConfig, run: RunConfig, fast: bool) -> Outcome:
    """The worst ratio of SRPT at the operation level over instances with uniform tests."""
    own = config.order.kind == "operation_srpt"  # as it is broken, or as the paper has it
    one = config if own else update(config, OPERATION_LEVEL)
    worst, count = ratio(drawn(one, 0, unlucky(fast)), run)[0], 1
    for load in LOADS:
        for spread in SPREADS:
            jobs = {"kind": "tested", "jobs": 60, "load": load, "spread": spread}
            for seed in range(1 if fast else SEEDS[1]):
                worst = max(worst, ratio(drawn(one, seed, jobs), run)[0])
                count += 1
    return Outcome(
        "at most twice the optimal total flow time, on every instance",
        f"at most {worst:.3f}× on {count} instances",
        worst <= 2.0,
        figure=Figure.exact(worst, "×"),
        needed=2.0,
    )


def best_possible(config: FlowTimeConfig, run: RunConfig, fast: bool) -> Outcome:
    """The least ratio of orders that know no more than they may, to each of which the adversary
    adapts."""
    told = _driven(config, unlucky(fast), run)
    least = min(told.values())
    return Outcome(
        f"no order that is told sizes as they are revealed comes within {DRIVEN}× the optimum, "
        "half of the way from it to two",
        ", ".join(f"{name} {value:.3f}×" for name, value in told.items()),
        least >= DRIVEN,
        figure=Figure.exact(least, "×"),
        needed=DRIVEN,
    )


def _driven(config: FlowTimeConfig, jobs: Changes, run: RunConfig) -> dict[str, float]:
    """How far from the optimum the adversary of tests drives the order under test, SRPT at the
    operation level, and those that know nothing."""
    orders = {"ours": config.order.kind, "operation level": "operation_srpt", **BLIND}
    told = {}
    for name, kind in orders.items():
        one = config if name == "ours" else update(config, {"order": kind})
        told[name] = ratio(drawn(one, 0, {**jobs, "adapts": True}), run)[0]
    return told


def bounded(config: FlowTimeConfig, run: RunConfig, fast: bool) -> Outcome:
    """The worst ratio over m1 times m2, on drawn instances and on adversaries'."""
    worst, flat, count = 0.0, 0.0, 0
    for jobs in _instances(fast):
        for seed in range(1 if fast else SEEDS[1]):
            found, product = ratio(drawn(config, seed, jobs), run)
            worst, flat, count = max(worst, found / product), max(flat, found), count + 1
    return Outcome(
        "at most m1·m2 times the optimal total flow time, on every instance",
        f"at most {worst:.3f} of m1·m2, at most {flat:.3f}× the optimum, on {count} instances",
        worst <= 1.0,
        figure=Figure.exact(worst),
        needed=1.0,
    )


def _instances(fast: bool) -> list[Changes]:
    found: list[Changes] = [unlucky(fast)]
    for most in OPERATIONS:
        found.append({"kind": "bait", "jobs": 60, "operations": most})
        for load in LOADS[1:]:
            for spread in SPREADS:
                found.append(
                    {"kind": "drawn", "jobs": 60, "operations": most, "load": load,
                     "spread": spread}
                )  # fmt: skip
    return found


def knows_more(config: FlowTimeConfig, run: RunConfig, fast: bool) -> Outcome:
    """Flow time of the best order that knows nothing over ours, same jobs, on two workloads; the
    figure is of the workload where that is less."""
    seeds = SEEDS[0] if fast else SEEDS[1]
    figures, told = [], []
    for name, jobs in workloads(config).items():
        ours = np.array([ratio(drawn(config, s, jobs), run)[0] for s in range(seeds)])
        theirs = {
            rival: np.array(
                [ratio(drawn(update(config, {"order": kind}), s, jobs), run)[0]
                 for s in range(seeds)]
            )
            for rival, kind in {**BLIND, "operation level": "operation_srpt"}.items()
        }  # fmt: skip
        blind = min(BLIND, key=lambda rival: float(theirs[rival].mean()))
        figure = Figure.ratio(theirs[blind].tolist(), ours.tolist())
        figures.append(figure)
        told.append(
            f"{name}: ours {ours.mean():.3f}× the optimum, "
            + ", ".join(f"{rival} {values.mean():.3f}×" for rival, values in theirs.items())
        )
    figure = min(figures, key=lambda each: each.value)
    return Outcome(
        "less flow time than the best order that knows no sizes (95% interval)",
        "; ".join(told)
        + f"; {blind} over ours {figure.value:.3f}× [{figure.low:.3f}, {figure.high:.3f}], "
        f"n = {figure.n}",
        figure.low > 1,
        figure=figure,
        needed=1.0,
    )


def workloads(config: FlowTimeConfig) -> dict[str, Changes]:
    """Jobs of some operations, and jobs behind a test."""
    own = config.jobs.model_dump() if config.jobs.kind == "drawn" else {"kind": "drawn"}
    load = getattr(config.jobs, "load", 0.9)
    return {
        DRAWN: {**own, "jobs": 60},
        TESTED: {"kind": "tested", "jobs": 60, "load": load, "nothing": 0.2},
    }


def over(
    knob: str, check: Callable[[FlowTimeConfig, RunConfig, bool], Outcome]
) -> Callable[[FlowTimeConfig, float, RunConfig, bool], Outcome]:
    """`check` with a knob at some value."""

    def judged(config: FlowTimeConfig, value: float, run: RunConfig, fast: bool) -> Outcome:
        whole = int(value) if knob.endswith("operations") else value
        return check(update(config, {knob: whole}), run, fast)

    return judged


def at_size(config: FlowTimeConfig, jobs: float, run: RunConfig, fast: bool) -> Outcome:
    """The least that an adversary of so many jobs at once drives any order to."""
    found = min(
        _driven(config, {"kind": "unlucky", "jobs": int(jobs), "stream": 2.0 * jobs}, run).values()
    )
    return Outcome(
        f"at least {DRIVEN}× the optimum", f"{found:.3f}×", found >= DRIVEN,
        figure=Figure.exact(found, "×"), needed=DRIVEN,
    )  # fmt: skip
