"""Walk through a plan: every rank does its actions in order, each as soon as it may.

Transfers ride beside the passes as delays, or, where the plan writes them out, hold both ranks
until they are over (a send blocks until its receive is reached).
"""

import numpy as np

from engine.kernels.compiled import checked


@checked
def walk(
    first: np.ndarray,
    rank: np.ndarray,
    waits: np.ndarray,
    delay: np.ndarray,
    partner: np.ndarray,
    transfer: np.ndarray,
    took: np.ndarray,
    after: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
) -> np.ndarray:
    """Fill `start` and `stop` (seconds) of every action that can happen.

    `delay`: seconds between what an action waits for and it; `took`: seconds it takes, and
    `after`: before its rank can begin the next; `transfer`: whether it is one end of a transfer,
    which begins when both ranks are there. Gives how many
    actions each rank did: fewer than it has where the plan is stuck.
    """
    ranks = len(first) - 1
    done = np.zeros(ranks, np.int64)
    free = np.zeros(ranks)
    finished = np.zeros(len(rank), np.bool_)
    moved = True
    while moved:
        moved = False
        for r in range(ranks):
            while first[r] + done[r] < first[r + 1]:
                a = first[r] + done[r]
                if transfer[a]:
                    b = partner[a]
                    if b < 0:
                        break
                    q = rank[b]
                    if q == r or first[q] + done[q] != b:
                        break
                    begin = max(free[r], free[q])
                    start[a] = start[b] = begin
                    stop[a] = stop[b] = begin + took[a]
                    free[r] = stop[a] + after[a]
                    free[q] = stop[b] + after[b]
                    finished[a] = finished[b] = True
                    done[r] += 1
                    done[q] += 1
                else:
                    begin = free[r]
                    d = waits[a]
                    if d >= 0:
                        if not finished[d]:
                            break
                        begin = max(begin, stop[d] + delay[a])
                    start[a] = begin
                    stop[a] = begin + took[a]
                    free[r] = stop[a] + after[a]
                    finished[a] = True
                    done[r] += 1
                moved = True
    return done
