"""What the claims of the low-communication studies are judged by: losses and bytes of logs."""

from collections import Counter

from engine.core.config import update
from engine.core.events import Move
from engine.core.log import Log
from engine.core.tags import facts
from engine.training.low_communication import metrics
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.executors.modelled import Modelled
from engine.training.low_communication.methods.one_bit_adam import OneBitAdam
from workbench.study import Break, Changes, Figure, Outcome, Reported, RunConfig

LITTLE: Changes = {"learning.hidden": 16, "learning.layers": 1, "learning.context": 32,
                   "learning.rows": 1, "learning.judged": 128, "learning.warmup": 2,
                   "learning.decay": 4, "replicas": 2, "steps": 24}  # fmt: skip
BRIEF: Changes = {"steps": 40, "report": 40, "learning.warmup": 4, "learning.decay": 8,
                  "learning.judged": 128}  # fmt: skip
# What every quality is judged by where there is little time; the seeds are as many.
SMALL: Changes = {"learning.hidden": 16, "learning.layers": 1, "learning.context": 32,
                  "learning.rows": 2, "learning.judged": 512, "steps": 48, "learning.warmup": 4,
                  "learning.decay": 12}  # fmt: skip
SLOW: Changes = {"executor": "modelled", "replicas": 3}
BUSY = 0.95  # of the time
SEEDS = 5
APART = 1e-6  # losses of ranks and of one process, of the same sums in the same order
SAME = Reported(0.0, "equal", tolerance=APART)
BROKEN_WIRE = (
    Break(
        {"executor": "real", "executor.fault": "stale"},
        mechanism=True,
        why="one rank's messages carry what it sent the time before",
    ),
    Break(
        {"executor": "real", "executor.fault": "lost"},
        mechanism=True,
        why="one rank's messages arrive as zeros",
    ),
    Break({"method": "synchronous"}, why="more bytes: the baseline's"),
)


def run(config: LowCommunicationConfig, run_config: RunConfig, changes: Changes) -> Log:
    """The log of a changed config, judged at its end only."""
    turned = update(config, changes)
    return run_config(update(turned, {"report": turned.steps, "beside": False}))


def trained(
    config: LowCommunicationConfig, run_config: RunConfig, changes: Changes, fast: bool,
    seeds: int = SEEDS,
) -> list[Log]:  # fmt: skip
    """Logs of a changed config, by seed. Checks that ask for the same get the same runs."""
    setting = {**SMALL, **changes} if fast else changes
    return [run(config, run_config, {**setting, "seed": seed}) for seed in range(seeds)]


def losses(
    config: LowCommunicationConfig, run_config: RunConfig, changes: Changes, fast: bool,
    seeds: int = SEEDS,
) -> list[float]:  # fmt: skip
    """Held-out losses of a changed config, by seed."""
    return [metrics.held_out(log) for log in trained(config, run_config, changes, fast, seeds)]


def excess(ours: list[float], theirs: list[float]) -> Figure:
    """By how much of itself `theirs` is exceeded, of runs paired by their seed."""
    return Figure.mean([a / b - 1 for a, b in zip(ours, theirs, strict=True)], unit="%")


def interval(figure: Figure) -> str:
    """Mean, ends of the 95% interval, and over how many seeds."""
    return f"{figure.value:+.2%} ({figure.low:+.2%} to {figure.high:+.2%}, {figure.n} seeds)"


def on_the_wire(
    config: LowCommunicationConfig, run_config: RunConfig, fast: bool, most: float
) -> Outcome:
    """Two processes over gloo, each message counted at both ends, beside the same replicas in one
    process; and their bytes, at most one in `most` of those of gradients at every step."""
    short = {"method.exact": 4} if isinstance(config.method, OneBitAdam) else {}
    here, there = (
        run(config, run_config, {**LITTLE, **short, "executor": where})
        for where in ("in_process", "ranks")
    )
    plain = {"method": "synchronous", "executor": "in_process", "steps": 4}
    every = run(config, run_config, {**LITTLE, **plain})
    cut = metrics.sent(every) / 4 * LITTLE["steps"] / metrics.sent(there)
    apart = abs(metrics.held_out(there) - metrics.held_out(here))
    same = messages(here) == messages(there)
    return Outcome(
        "the messages of one process and its loss within 1e-6; at most "
        f"1/{most:g} of the bytes of float32 gradients at every step",
        f"{'the same' if same else 'other'} messages, {sum(messages(there).values())} of them, "
        f"loss {apart:.1e} apart; 1/{cut:.1f} of the bytes",
        same and apart <= APART and cut >= most,
        figure=Figure.exact(apart, "nats"),
        needed=APART,
    )


def messages(log: Log) -> Counter[tuple[str, str, float, str]]:
    """Who sent whom how many bytes for what, and how often."""
    return Counter(
        (move.source, move.target, move.bytes, facts(move.tag).get("task", ""))
        for move in log.of(Move)
    )


def hidden(config: LowCommunicationConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The same training on a described network: share of a replica's time that is computing, beside
    DiLoCo of the same H whose numbers are packed alike."""
    return over_link(config, Modelled().bandwidth, run_config, fast)


def over_link(
    config: LowCommunicationConfig, bandwidth: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with a port of another bandwidth."""
    turned = {**BRIEF, **SLOW, "executor.bandwidth": bandwidth}
    every = getattr(config.method, "every", 16)
    ours = run(config, run_config, turned)
    diloco = {**turned, "method": "diloco", "method.every": every}
    packed = {"method.codec": getattr(config.method, "codec", "float32")}
    plain, rival = (run(config, run_config, {**diloco, **more}) for more in ({}, packed))
    mine, theirs = metrics.busy(ours), metrics.busy(rival)
    faster = rival.duration / ours.duration
    return Outcome(
        f"computing at least {BUSY:.0%} of the time, where DiLoCo that packs its numbers alike "
        "computes less",
        f"{mine:.1%} against {theirs:.1%}: done in 1/{faster:.2f} of its time, and in "
        f"1/{plain.duration / ours.duration:.2f} of that of DiLoCo in float32",
        mine >= BUSY and theirs < mine,
        figure=Figure.exact(faster, "×"),
        needed=1.0,
    )
