"""Admission policies: admit what fits now, or only what can run to its end."""

from abc import abstractmethod
from typing import Literal

import numpy as np

from engine.core.config import Policy, knob
from engine.inference.policies.policy import Need, View
from engine.inference.requests.request import Request


class Admission(Policy):
    """Whether there is room for one more request."""

    folder = "engine.inference.policies.admission"

    @abstractmethod
    def admits(self, request: Request, need: Need, view: View) -> bool:
        """Asked of the next request; `need.now` pages are known to be free or can be made so."""


class Greedy(Admission):
    """Admit when the prompt fits now; running out later is preemption's business."""

    kind: Literal["greedy"] = "greedy"
    spare: float = knob(
        0.01, "Share of all pages to leave free for those who run", low=0.0, high=0.9
    )

    def admits(self, request: Request, need: Need, view: View) -> bool:
        alone = not len(view.decoding) and not view.prefilling
        return alone or view.pages_free - need.now >= self.spare * view.pages


class Reserve(Admission):
    """Admit when every running request and this one can reach their limits: nobody is preempted."""

    kind: Literal["reserve"] = "reserve"

    def admits(self, request: Request, need: Need, view: View) -> bool:
        rows, count = view.rows, view.rows.count
        ends = -(-rows.limit[:count] // view.page_size)
        growth = int(np.maximum(ends - rows.pages[:count], 0).sum())
        return need.peak + growth <= view.pages_free
