"""A judge that looks at the surface: how few letters have to be changed to make two traces one."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from engine.reasoning.pruning.judge import Answers, Cost, Judge, Judging, Trace


class EditDistance(Judge):
    """One minus the edit distance (Levenshtein, 1966) as a share of the longer trace."""

    kind: Literal["edit_distance"] = "edit_distance"

    def open(self, answers: Answers) -> Judging:
        return _Edits()


class _Edits:
    def __init__(self) -> None:
        self.cost = Cost()

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        self.cost.comparisons += len(others)
        return [alike(other.text, trace.text) for other in others]

    def forget(self) -> None:
        pass


def alike(one: str, other: str) -> float:
    """1 for equal texts, 0 for texts that have nothing in common."""
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


def distance(one: str, other: str) -> int:
    """Letters to be inserted, deleted or replaced to make one text the other."""
    other_L = np.frombuffer(other.encode("utf-32-le"), np.uint32)
    places_L1 = np.arange(len(other_L) + 1)
    row_L1 = places_L1.copy()
    for number, letter in enumerate(one, 1):
        # Insertions chain along the row: a running minimum of cost minus place.
        above = np.minimum(row_L1[1:] + 1, row_L1[:-1] + (other_L != ord(letter)))
        fresh_L1 = np.concatenate([[number], above])
        row_L1 = np.minimum.accumulate(fresh_L1 - places_L1) + places_L1
    return int(row_L1[-1])
