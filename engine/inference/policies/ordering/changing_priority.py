"""Priorities that change while requests run, as fairness between many users asks for (FastSwitch's
offline traces of priorities, arXiv 2411.18424)."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request
from engine.kernels.draws import mix

LEVELS = 1 << 16


class ChangingPriority(Ordering):
    """Every so many steps each request draws its priority anew; who outranks a running one takes
    its place."""

    kind: Literal["changing_priority"] = "changing_priority"
    every: int = knob(
        25,
        "Steps between draws",
        low=1,
        high=1 << 20,
        unit="steps",
        log=True,
        called="Steps between draws",
    )
    pattern: Literal["random", "markov"] = knob(
        "random", "Draws know nothing of those before, or whoever ran of late likely goes on"
    )
    stays: float = knob(
        0.8, "With markov: chance that a draw is as the one before", low=0.0, high=1.0
    )

    @property
    def moving(self) -> bool:
        return True

    @property
    def displaces(self) -> bool:
        return True

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return (float(-self._drawn(request.seed, view.step // self.every)),)

    def outranks(self, waiting: Request, running: Request, view: View) -> bool:
        return self.key(waiting, view) < self.key(running, view)

    def _drawn(self, seed: int, turn: int) -> int:
        """The priority that a request has in some turn; higher goes first."""
        if self.pattern == "markov":
            while turn > 0 and _level(seed ^ LEVELS, turn) < self.stays * LEVELS:
                turn -= 1
        return _level(seed, turn)


def _level(seed: int, turn: int) -> int:
    return mix(seed + turn * 0x9E3779B9) % LEVELS
