"""Zero bubble over a V of two chunks a rank, its order found for given pass times."""

from itertools import product
from typing import Literal

import numpy as np

from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.greedy_v import Hand, deal_v, hand
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.schedules.zb_v import ZeroBubbleV

LETTERS = (Kind.F, Kind.I, Kind.W)
ROUNDS = 64  # times a rank's waits are given back as what it may wait


class ZeroBubbleVGreedy(PipelineSchedule):
    """ZB-V for passes that take what they take (Qi et al., arXiv 2401.10241, section 4).

    The best of four greedy orders by the longest wait of a rank, each dealt again, with the waits
    that came out allowed, for as long as that helps. Without a limit in 1F1B's memory; where no
    greedy order comes to an end, that of equal passes.
    """

    kind: Literal["zb_v_greedy"] = "zb_v_greedy"

    def plan(self, pipe: Pipe) -> Plan:
        best: Hand | None = None
        for before_forward, before_backward in product((True, False), repeat=2):
            found = _dealt(pipe, np.array([before_forward, before_backward]))
            if found is not None and (best is None or _longest(found) < _longest(best)):
                best = found
        if best is None:
            return ZeroBubbleV().plan(pipe)
        rows = zip(best.kinds.tolist(), best.chunks.tolist(), best.turns.tolist(), strict=True)
        return plan(
            [
                Action(rank if chunk == 0 else 2 * pipe.ranks - 1 - rank, LETTERS[kind], turn)
                for kind, chunk, turn in zip(*row, strict=True)
            ]
            for rank, row in enumerate(rows)
        )


def _dealt(pipe: Pipe, short: np.ndarray) -> Hand | None:
    """The best hand of one rule; None where it gets stuck."""
    times = np.array([pipe.forward, pipe.backward_input, pipe.backward_weight]) / 2
    sizes = np.array([1.0, pipe.kept - 1.0, -pipe.kept]) / 2  # of a microbatch through a rank
    limit = min(pipe.limit, float(pipe.ranks))
    best, allowed = None, np.full(pipe.ranks, -1.0)
    for _ in range(ROUNDS):
        found = hand(pipe.ranks, pipe.microbatches)
        if not deal_v(found, times, sizes, pipe.transfer, limit, short, allowed):
            return best
        if best is not None and _longest(found) >= _longest(best):
            return best
        best, allowed = found, found.waited
    return best


def _longest(found: Hand) -> float:
    return float(found.waited.max())
