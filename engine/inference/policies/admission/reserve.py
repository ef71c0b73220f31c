"""Admit by memory: only what can run to its end together with all that run already."""

from typing import Literal

import numpy as np

from engine.inference.policy import Admission, Need, View
from engine.inference.request import Request


class Reserve(Admission):
    """Admit when every running request and this one can reach their limits: nobody is preempted."""

    kind: Literal["reserve"] = "reserve"

    def admits(self, request: Request, need: Need, view: View) -> bool:
        rows, count = view.rows, view.rows.count
        ends = -(-rows.limit[:count] // view.page_size)
        growth = int(np.maximum(ends - rows.pages[:count], 0).sum())
        return need.peak + growth <= view.pages_free
