"""Bubbles of pipeline schedules on the clock: closed forms, published rates, a searched order."""

from engine.core.config import update
from engine.training.pipeline.config import PipelineConfig
from engine.training.plan.bubble import of_log
from workbench.studies.training._megatron import bubbles, pass_times
from workbench.study import Break, Claim, Figure, Outcome, Reported, RunConfig

EXACT = 1e-9
BY_HAND = ("1f1b", "zb_h1", "zb_h2")
LATE = Break(
    {"fault": "late_backward"},
    mechanism=True,
    why="the first rank runs one forward too many before its first backward",
)
SLOW = Break({"slow_rank": 1, "slow_by": 1.5}, why="one rank is slower: another machine")


def bubble_formula(config: PipelineConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """1F1B, GPipe and interleaving with equal passes, several sizes, against the closed form."""
    worst, cases = 0.0, 0
    for p, m in ((4, 8), (8, 32), (16, 48)):
        for kind, v in (
            ("gpipe", 1),
            ("1f1b", 1),
            ("interleaved_1f1b", 2),
            ("interleaved_1f1b", 4),
        ):
            turned: dict[str, object] = {"passes": "given", "ranks": p, "microbatches": m}
            turned["schedule"] = kind
            if v > 1:
                turned["schedule.chunks"] = v
            found = of_log(run_config(update(config, turned)))
            total, ideal = (p - 1) / (v * m + p - 1), (p - 1) / (v * m)
            worst = max(worst, abs(found.of_total - total), abs(found.of_ideal - ideal))
            cases += 1
    return Outcome(
        f"(p-1)/(vm+p-1) of the total and (p-1)/(vm) of the ideal time, {cases} cases to 1e-9",
        f"largest difference {worst:.2g}",
        worst < EXACT,
        figure=Figure.exact(worst),
        needed=EXACT,
    )


def published_bubbles(config: PipelineConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """1F1B, ZB-H1 and ZB-H2 with the published pass times, to the printed four decimals."""
    asked = [row for row in bubbles() if not fast or row["ranks"] == 8]
    same = 0
    for row in asked:
        for kind in BY_HAND:
            log = run_config(update(config, {**pass_times(row), "schedule": kind}))
            same += round(of_log(log).of_longest_rank, 4) == row[kind]
    total = len(asked) * len(BY_HAND)
    return Outcome(
        f"{total} of {total} bubble rates equal",
        f"{same} of {total}",
        same == total,
        figure=Figure.exact(total - same, "rates that differ"),
        needed=0.0,
    )


def searched(config: PipelineConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The search in ZB-H2's memory (or in the limit set) beside ZB-H2 itself, for weights that keep
    all of a microbatch's activations waiting, and half of them."""
    asked = [row for row in bubbles() if not fast or row["ranks"] == 8]
    gains: dict[float, list[float]] = {1.0: [], 0.5: []}
    for row in asked:
        turned = pass_times(row)
        limit = config.memory_limit or 2.0 * row["ranks"] - 1
        by_hand = run_config(update(config, {**turned, "schedule": "zb_h2"}))
        for kept, found in gains.items():
            memory = {"memory_limit": limit, "passes.kept": kept}
            search = {**turned, "schedule": "zero_bubble_search", **memory}
            log = run_config(update(config, search))
            found.append(of_log(by_hand).of_longest_rank - of_log(log).of_longest_rank)
    return Outcome(
        f"with 2p - 1 activations no larger a bubble in {len(asked)} settings; smaller in all "
        "where the weights keep half of them",
        f"{sum(gain >= -1e-9 for gain in gains[1.0])} no larger; "
        f"{sum(gain > 1e-4 for gain in gains[0.5])} smaller, by {min(gains[0.5]):.4f} to "
        f"{max(gains[0.5]):.4f}",
        min(gains[1.0]) >= -EXACT and min(gains[0.5]) > 1e-4,
        figure=Figure.exact(min(gains[1.0]), "of a rank's time"),
        needed=0.0,
    )


CLAIMS = (
    Claim(
        id="bubble-formula",
        sentence="Interleaving divides the bubble by the number of chunks on a rank.",
        paper="(p-1)/m of the ideal time; (1/v)(p-1)/m interleaved (sections 2.2.1, 2.2.2)",
        grade="exact",
        check=bubble_formula,
        reported=Reported(0.0, "equal", tolerance=EXACT),
        finding="reproduced",
        broken=(LATE, SLOW),
    ),
    Claim(
        id="published-bubbles",
        sentence="Splitting the backward shrinks the bubble to what the pass times leave.",
        paper="Zero Bubble, arXiv 2401.10241, tables 4 to 6: rates of 1F1B, ZB-H1, ZB-H2",
        grade="exact",
        check=published_bubbles,
        reported=Reported(0.0, "equal"),
        finding="reproduced",
        broken=(LATE, SLOW),
    ),
    Claim(
        id="searched",
        sentence="A searched order is no worse than the best by hand in the same memory.",
        paper="Zero Bubble, arXiv 2401.10241, section 3.1 and tables 4 to 6",
        grade="exact",
        check=searched,
        reported=Reported(0.0, tolerance=EXACT),
        finding="reproduced",
        why="no figure but a bound: not below ZB-H2's. The paper's own searched "
        "rates, far below it in twice the memory, are not held to",
        broken=(
            Break(
                {"schedule": "zero_bubble_search", "schedule.fault": "idle"},
                True,
                "waits are never filled with the weights' backwards",
            ),
            Break({"memory_limit": 8.0}, why="less memory than the order by hand"),
        ),
    ),
)
