"""What the claims of the low-communication studies are judged by: losses and bytes of logs."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

from engine.core.config import update
from engine.core.log import Log
from engine.training.outer import said
from engine.training.outer.config import LowCommunicationConfig
from workbench.study import Changes, RunConfig

STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57}  # two-sided 95%, by number of runs
BRIEF: Changes = {"steps": 40, "report": 40, "learning.warmup": 4, "learning.decay": 8}


def seeds(fast: bool) -> range:
    """Three seeds, or five where there is time."""
    return range(3 if fast else 5)


def run(config: LowCommunicationConfig, run_config: RunConfig, changes: Changes) -> Log:
    """The log of a changed config, judged at its end only."""
    turned = update(config, changes)
    return run_config(update(turned, {"report": turned.steps, "beside": False}))


def excess(
    config: LowCommunicationConfig, run_config: RunConfig, other: Changes, fast: bool
) -> list[float]:
    """By how much of itself the held-out loss of `other` is exceeded, for each seed."""
    found = []
    for seed in seeds(fast):
        ours = said.held_out(run(config, run_config, {"seed": seed}))
        theirs = said.held_out(run(config, run_config, {**other, "seed": seed}))
        found.append(ours / theirs - 1)
    return found


def interval(values: Sequence[float]) -> str:
    """Mean, 95% interval by Student's t over the seeds, and how many there were."""
    half = STUDENT[len(values)] * stdev(values) / sqrt(len(values))
    return f"{mean(values):+.2%} ± {half:.2%} (n={len(values)} seeds)"
