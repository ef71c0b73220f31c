"""Deadlock report: who waits where for whom, round the circle, where a plan cannot go on."""

import numpy as np

from engine.training.plan.actions import RECEIVES, SENDS, Action, Plan
from engine.training.plan.columns import NOBODY, Columns


def stuck(given: Plan, table: Columns, done: np.ndarray) -> str:
    """One sentence from how many actions each rank did before nothing moved."""
    left = [rank for rank in range(len(given.ranks)) if done[rank] < len(given.ranks[rank])]
    rank, seen, words = left[0], [], []
    while rank not in seen:
        seen.append(rank)
        place = int(done[rank])
        here = given.ranks[rank][place]
        number = int(table.first[rank]) + place
        needed = int(table.partner[number] if _moves(here) else table.waits[number])
        at = f"rank {rank} waits at {here} (its action {place + 1})"
        if needed == NOBODY:
            words.append(f"{at} for a {_other(here)} that no rank does")
            break
        other = int(table.rank[needed])
        what = given.ranks[other][needed - int(table.first[other])]
        words.append(f"{at} for {what} of rank {other}")
        if other == rank:
            words[-1] = f"{at} for {what}, which it does later itself"
            break
        rank = other
    return f"plan is stuck: {'; '.join(words)}"


def _moves(here: Action) -> bool:
    return here.kind in SENDS or here.kind in RECEIVES


def _other(here: Action) -> str:
    if here.kind in SENDS:
        return str(SENDS[here.kind].value)
    return str(RECEIVES[here.kind].value) if here.kind in RECEIVES else "pass"
