"""Look-up of drafts by n-grams (numba): what followed a row's last tokens where they stood before.

Where n-grams end is kept from step to step, so that a look-up goes over the places where one of
the same hash stands, however long the row is.

Shape letters: R rows, W tokens of a row, M hashes, D rows that decode, K tokens drafted.
"""

from typing import NamedTuple

import numpy as np

from engine.core.memory import demand_zeros
from engine.kernels.compiled import checked, inner, settled

HASHES = 1024  # of a row, a power of two
SPREAD, UPPER = np.uint64(0x9E3779B97F4A7C15), np.uint64(54)  # 64 less its bits


class Places(NamedTuple):
    """Where n-grams end in rows, the latest of each hash and from each the one before it."""

    looked_R: np.ndarray  # int32: ends before this place are kept; 0: another sits in the row now
    latest_RM: np.ndarray  # int32, -1 for none
    before_RW: np.ndarray  # int32, -1 for none

    @classmethod
    def of(cls, looked_R: np.ndarray, tokens_RW: np.ndarray) -> "Places":
        """None yet, for rows like `tokens_RW`."""
        looked_R[:] = 0
        latest_RM = demand_zeros((len(tokens_RW), HASHES), np.int32)
        return cls(looked_R, latest_RM, demand_zeros(tokens_RW.shape, np.int32))


@inner
def _hash(row_W, end, count):
    """Of the `count` tokens up to `end`."""
    found = np.uint64(0)
    for i in range(end - count + 1, end + 1):
        found = (found ^ np.uint64(row_W[i])) * SPREAD
        found ^= found >> np.uint64(29)
    return np.int64((found * SPREAD) >> UPPER)


@checked
def _look_up(
    tokens_RW: np.ndarray, rows_D: np.ndarray, known_R: np.ndarray, looked_R: np.ndarray,
    latest_RM: np.ndarray, before_RW: np.ndarray, shortest: int, longest: int,
    drafts_DK: np.ndarray,
) -> None:  # fmt: skip
    """Fill drafts_DK with what followed a row's last tokens where they stood before, -1 beyond.

    Of the places where at least `shortest` of the last tokens stand, the one where most of them do
    (`longest` at most) is taken, the latest among equals.
    """
    drafts_DK[:] = -1
    for d in range(len(rows_D)):
        r = rows_D[d]
        row_W, latest_M, before_W, known = tokens_RW[r], latest_RM[r], before_RW[r], known_R[r]
        if looked_R[r] == 0:
            latest_M[:] = -1
        for end in range(max(looked_R[r], shortest - 1), known - 1):
            at = _hash(row_W, end, shortest)
            before_W[end], latest_M[at] = latest_M[at], end
        looked_R[r] = max(looked_R[r], known - 1)
        best, place = shortest - 1, -1
        here = latest_M[_hash(row_W, known - 1, shortest)] if known > shortest else -1
        while here >= 0 and best < longest:
            length, most = 0, min(longest, here + 1)
            while length < most and row_W[here - length] == row_W[known - 1 - length]:
                length += 1
            if length > best:
                best, place = length, here
            here = before_W[here]
        if place >= 0:
            for i in range(min(drafts_DK.shape[1], known - 1 - place)):
                drafts_DK[d, i] = row_W[place + 1 + i]


look_up = settled(_look_up)
