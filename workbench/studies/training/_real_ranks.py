"""Plans on four real ranks: gradients held to one process, bubbles held to the clock."""

from engine.cluster.pipeline import ERROR
from engine.core.config import update
from engine.core.events import Level
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.executors.real import OnRanks
from engine.training.plan.bubble import of_log
from workbench.study import Break, Changes, Claim, Figure, Outcome, Regime, Reported, RunConfig

REAL: Changes = {
    "passes": "given",
    "passes.forward": 0.05,
    "passes.backward_input": 0.05,
    "passes.backward_weight": 0.05,
    "ranks": 4,
    "microbatches": 8,
    "schedule": "1f1b",
    "executor": "both",
}
SUMS, OFF = 1e-5, 0.10  # of a gradient's largest number; of a bubble
RUNS = 5  # of each schedule
PASS = 0.1  # seconds of a pass, beside which what ranks lose to one another's cores weighs little
CHUNKS = {"interleaved_1f1b": 2, "zb_v": 2}  # on each rank; of other schedules one
KINDS = ("zb_v", "1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_h2", "zero_bubble_search")


def exact_gradients(config: PipelineConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Schedules on four real ranks, passes as fast as they go, against one process."""
    errors = {}
    for kind in KINDS[:1] if fast else KINDS:
        log = run_config(real(config, {"schedule": kind, "executor.paced": False}))
        errors[kind] = max(e.value for e in log.of(Level) if e.name == ERROR)
    worst = max(errors, key=lambda kind: errors[kind])
    return Outcome(
        "largest difference at most 1e-5 of a gradient's largest number",
        f"{errors[worst]:.2g} ({worst}, worst of {len(errors)} schedules)",
        errors[worst] <= SUMS,
        figure=Figure.exact(errors[worst]),
        needed=SUMS,
    )


def real_bubble(config: PipelineConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Four paced ranks beside the clock that is told what each pass took, and how long on average
    a tensor was on its way and a rank from pass to pass; the mean of five runs each. A schedule
    whose whole interval is out of bounds says no for all: those after it are not run."""
    return of_passes(config, PASS, run_config, fast)


def of_passes(config: PipelineConfig, seconds: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of passes that take so many seconds."""
    errors = {}
    for kind in ("1f1b", "zb_h1") if fast else KINDS:
        found = []
        for _ in range(1 if fast else RUNS):
            log = run_config(real(config, slow(kind, seconds)))
            found.append(of_log(log).of_total / of_log(log, "modelled").of_total - 1)
        error = errors[kind] = Figure.exact(found[0], "%") if fast else Figure.mean(found, "%")
        if error.low > OFF or error.high < -OFF:
            break
    worst = max(errors.values(), key=_furthest)
    return Outcome(
        "measured bubble within 10% of the clock's, to the ends of the interval",
        ", ".join(f"{kind} {error.value:+.1%}" for kind, error in errors.items()),
        _furthest(worst) <= OFF,
        figure=worst,
        needed=OFF,
    )


def _furthest(figure: Figure) -> float:
    """How far from 0 its interval goes."""
    return max(abs(figure.low), abs(figure.high))


def slow(kind: str, seconds: float) -> Changes:
    """A schedule whose passes take so long each, where a rank has one chunk."""
    each = seconds * CHUNKS.get(kind, 1)
    names = ("forward", "backward_input", "backward_weight")
    return {"schedule": kind, **{f"passes.{name}": each for name in names}}


def real(config: PipelineConfig, more: Changes) -> PipelineConfig:
    """Four real ranks beside the clock, with what `config` says of a run of the ranks."""
    kept = {}
    if isinstance(config.executor, OnRanks):
        kept = {f"executor.{name}": getattr(config.executor, name) for name in ("stall", "swapped")}
    return update(config, {**REAL, **kept, **more})


REGIMES = (
    Regime(
        claim="real-bubble",
        knob="seconds of a pass",
        values=(0.01, 0.02, 0.05, PASS, 0.2),
        coarse=(0.01, PASS),
        x="seconds of a pass",
        y="measured bubble above the clock's",
        default=PASS,
        judged=of_passes,
        log_x=True,
    ),
)
CLAIMS = (
    Claim(
        id="exact-gradients",
        sentence="Whatever the schedule, real ranks find the gradients of one process.",
        paper="strict optimiser semantics (section 2.2): flushes keep weights one version",
        grade="exact",
        check=exact_gradients,
        reported=Reported(0.0, "equal", tolerance=SUMS),
        finding="reproduced",
        why="no difference, but for the order in which 32-bit numbers are summed",
        broken=(
            Break(
                {"executor": "both", "executor.swapped": 1},
                True,
                "a microbatch takes another one's place",
            ),
        ),
    ),
    Claim(
        id="real-bubble",
        sentence="The clock, told what passes took, tells the bubble of real ranks.",
        paper="(p-1)/m of the ideal time and measured throughput (sections 2.2 and 5)",
        grade="measured",
        check=real_bubble,
        reported=Reported(0.0, "equal", tolerance=OFF),
        finding="reproduced",
        why="the schedule whose interval over five runs goes furthest; the paper states no "
        "tolerance: it is ours",
        broken=(
            Break(
                {"executor": "both", "executor.stall": 0.05},
                True,
                "ranks stall between a message and its pass, and the clock is not told",
            ),
        ),
        timed=True,
    ),
)
