"""Goodput: the share of training time that is progress, under device failures and checkpoints.

The closed forms of Young (CACM 1974) and Daly (FGCS 2006) for failures that come independently, and
the same played step by step from a seed. Seconds throughout; a failure during a restart begins it
anew, one during a checkpoint loses it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Literal

import numpy as np

from engine.core.errors import BadInput
from engine.core.names import counted

What = Literal["step", "checkpoint", "lost", "restart"]
MOST = 300_000  # pieces of a history


def young(write: float, mtbf: float) -> float:
    """Work between checkpoints that costs least, to first order."""
    return sqrt(2 * write * mtbf)


def daly(write: float, mtbf: float) -> float:
    """The same to a higher order (equation 37)."""
    if write >= 2 * mtbf:
        return mtbf
    ratio = sqrt(write / (2 * mtbf))
    return young(write, mtbf) * (1 + ratio / 3 + ratio**2 / 9) - write


def expected(work: float, write: float, restart: float, mtbf: float) -> float:
    """Mean time from one checkpoint to the next, `work` apart (Daly, equation 20)."""
    if mtbf == inf:
        return work + write
    return exp(restart / mtbf) * mtbf * (exp((work + write) / mtbf) - 1)


@dataclass(frozen=True)
class Piece:
    """What was done from `start` to `stop`; `step`: the number of the step that was to be done;
    `saved`: how many the last checkpoint holds."""

    what: What
    start: float
    stop: float
    step: int
    saved: int


@dataclass(frozen=True)
class History:
    """`pieces` in order. `failures`: (moment, steps lost). `useful`: seconds of steps that were
    kept; `end`: of all."""

    pieces: list[Piece]
    failures: list[tuple[float, int]]
    useful: float
    end: float

    @property
    def goodput(self) -> float:
        return self.useful / self.end if self.end > 0 else 1.0


def played(
    took: Callable[[int], float], steps: int, every: int, write: float, restart: float,
    mtbf: float, seed: int,
) -> History:  # fmt: skip
    """`steps` steps; `took(step)`: seconds of one; `mtbf`: of all devices together, inf for none.

    A checkpoint follows every `every`-th step, none the last. Raises BadInput where training hardly
    ever gets from one checkpoint to the next.
    """
    dice = np.random.default_rng(seed)

    def fails(now: float) -> float:
        return now + float(dice.exponential(mtbf)) if mtbf < inf else inf

    pieces: list[Piece] = []
    failures: list[tuple[float, int]] = []
    now, step, saved, failing, useful, since = 0.0, 0, 0, fails(0.0), 0.0, 0.0

    def did(what: What, seconds: float) -> bool:
        """Whether it came to its end before the next failure."""
        nonlocal now
        if len(pieces) > MOST:
            fell = counted(len(failures), "failure")
            raise BadInput(
                f"faults: after {fell} training is at step {saved:,} of {steps:,}; take "
                "checkpoints more often, or a longer mean time between failures"
            )
        whole = now + seconds <= failing
        stop = now + seconds if whole else failing
        pieces.append(Piece(what if whole else _cut(what), now, stop, step, saved))
        now = stop
        return whole

    while step < steps:
        seconds = took(step)
        whole = did("step", seconds)
        if whole:
            step, since = step + 1, since + seconds
            if step % every and step < steps:
                continue
            whole = step == steps or did("checkpoint", write)
        if whole:
            saved, useful, since = step, useful + since, 0.0
            continue
        failures.append((now, step - saved))
        step, since, failing = saved, 0.0, fails(now)
        while not did("restart", restart):
            failures.append((now, 0))
            failing = fails(now)
    return History(pieces, failures, useful, now)


def _cut(what: What) -> What:
    return "restart" if what == "restart" else "lost"
