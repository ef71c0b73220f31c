"""Zero bubble searched for: the order fits the pass times and the memory there is."""

from itertools import product
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.search import NEVER, deal

LETTERS = (Kind.F, Kind.I, Kind.W)
GAPS = (0.0, 0.5, 0.75, 1.0)  # shares of W worth filling a wait with
ROUNDED = (1e-9, 0.25, 0.5)  # what is added to a rank's depth before its fraction is cut off


class ZeroBubbleSearch(PipelineSchedule):
    """List schedules over rules of how far ranks run ahead (Qi et al., arXiv 2401.10241, 3.1).

    Takes the limit, the transfer and the pass times of the pipe. Without a limit, twice the ranks.
    """

    kind: Literal["zero_bubble_search"] = "zero_bubble_search"
    fault: Literal["none", "idle"] = knob(
        "none", "What goes wrong: waits are never filled with the weights' backwards",
        group="faults",
    )  # fmt: skip
    rules: int = knob(12, "depths tried between 1F1B's and the memory limit", low=1, high=64)

    def plan(self, pipe: Pipe) -> Plan:
        if pipe.limit < 1:
            raise BadInput(f"memory limit: {pipe.limit:g} activations; one microbatch takes 1")
        scale = pipe.microbatches * (pipe.forward + pipe.backward_input + pipe.backward_weight)
        best, rows = (NEVER, NEVER), None
        for ahead, late, gap in self._candidates(pipe):
            kinds = np.zeros((pipe.ranks, 3 * pipe.microbatches), np.int8)
            turns = np.zeros((pipe.ranks, 3 * pipe.microbatches), np.int32)
            most = best[0] * scale * (1 + 1e-9)
            longest, end = _deal(pipe, ahead, late, gap, most, kinds, turns)
            cost = (round(longest / scale, 12), end)
            if cost < best:
                best, rows = cost, (kinds, turns)
        if rows is None:
            raise BadInput("zero_bubble_search: no rule fits; raise the memory limit")
        dealt = zip(rows[0].tolist(), rows[1].tolist(), strict=True)
        return plan(
            [Action(rank, LETTERS[k], j) for k, j in zip(*row, strict=True)]
            for rank, row in enumerate(dealt)
        )

    def _candidates(self, pipe: Pipe) -> list[tuple[np.ndarray, np.ndarray, float]]:
        limit = min(pipe.limit, 2.0 * pipe.ranks)
        after = np.arange(pipe.ranks - 1, -1, -1.0)  # ranks behind each one
        steepest = (limit - 1) / max(1, pipe.ranks - 1)
        found = []
        # The steepest first: what it reaches cuts the others short.
        slopes = np.linspace(steepest, min(1.0, steepest), self.rules)
        for slope, more in product(dict.fromkeys(slopes.tolist()), ROUNDED):
            ahead = np.minimum(np.floor(slope * after + 1 + more), np.floor(limit))
            room = np.floor((limit - ahead) / max(pipe.kept, 1e-3) + 1e-9)
            by_hand = np.floor(slope * after[::-1] + 1e-9)
            for late in dict.fromkeys((tuple(room), tuple(np.minimum(by_hand, room)))):
                gaps = (NEVER,) if self.fault == "idle" else GAPS
                found += [(ahead.astype(np.int64), np.array(late, np.int64), g) for g in gaps]
        return found


def _deal(
    pipe: Pipe, ahead: np.ndarray, late: np.ndarray, gap: float, most: float,
    kinds: np.ndarray, turns: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    times = np.array([pipe.forward, pipe.backward_input, pipe.backward_weight])
    limit = min(pipe.limit, 2.0 * pipe.ranks)
    longest, end = deal(
        pipe.ranks, pipe.microbatches, times, pipe.transfer, limit, pipe.kept,
        ahead, late, gap, most, kinds, turns,
    )  # fmt: skip
    return float(longest), float(end)
