"""What the claims of the low-communication studies are judged by: losses and bytes of logs."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

from engine.core.config import update
from engine.core.events import Move
from engine.core.log import Log
from engine.core.tags import facts
from engine.training.low_communication import metrics
from engine.training.low_communication.config import LowCommunicationConfig
from engine.training.low_communication.methods.one_bit_adam import OneBitAdam
from workbench.study import Changes, Outcome, RunConfig

STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57}  # two-sided 95%, by number of runs
LITTLE: Changes = {"learning.hidden": 16, "learning.layers": 1, "learning.context": 32,
                   "learning.rows": 1, "learning.judged": 128, "learning.warmup": 2,
                   "learning.decay": 4, "replicas": 2, "steps": 24}  # fmt: skip
BRIEF: Changes = {"steps": 40, "report": 40, "learning.warmup": 4, "learning.decay": 8}


def seeds(fast: bool) -> range:
    """Two seeds, or five where there is time."""
    return range(2 if fast else 5)


def run(config: LowCommunicationConfig, run_config: RunConfig, changes: Changes) -> Log:
    """The log of a changed config, judged at its end only."""
    turned = update(config, changes)
    return run_config(update(turned, {"report": turned.steps, "beside": False}))


def excess(
    config: LowCommunicationConfig, run_config: RunConfig, other: Changes, fast: bool
) -> list[float]:
    """By how much of itself the held-out loss of `other` is exceeded, for each seed."""
    found, same = [], update(config, other) == config
    for seed in seeds(fast):
        ours = metrics.held_out(run(config, run_config, {"seed": seed}))
        theirs = (
            ours if same else metrics.held_out(run(config, run_config, {**other, "seed": seed}))
        )
        found.append(ours / theirs - 1)
    return found


def interval(values: Sequence[float]) -> str:
    """Mean, 95% interval by Student's t over the seeds, and how many there were."""
    half = STUDENT[len(values)] * stdev(values) / sqrt(len(values))
    return f"{mean(values):+.2%} ± {half:.2%} (n={len(values)} seeds)"


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
    every = run(config, run_config, {**LITTLE, "method": "synchronous", "steps": 4})
    cut = metrics.sent(every) / 4 * LITTLE["steps"] / metrics.sent(there)
    apart = abs(metrics.held_out(there) - metrics.held_out(here))
    same = messages(here) == messages(there)
    return Outcome(
        "the messages of one process and its loss within 1e-6; at most "
        f"1/{most:g} of the bytes of float32 gradients at every step",
        f"{'the same' if same else 'other'} messages, {sum(messages(there).values())} of them, "
        f"loss {apart:.1e} apart; 1/{cut:.1f} of the bytes",
        same and apart <= 1e-6 and cut >= most,
    )


def messages(log: Log) -> Counter[tuple[str, str, float, str]]:
    """Who sent whom how many bytes for what, and how often."""
    return Counter(
        (move.source, move.target, move.bytes, facts(move.tag).get("task", ""))
        for move in log.of(Move)
    )
