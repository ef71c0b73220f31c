"""Fewest words attention can move between slow memory and M words of fast memory.

N rows, C columns, M words in, words out. The paper (Saha & Ye, arXiv 2402.07443, abstract) gives
Ω(min(N²C²/M, N²C/√M)) without its constant; the constants here are ours, by counting in phases:
cut a run where X more words have been loaded; a phase sees at most M + X words.
"""

import math


def order(rows: int, width: int, capacity: int) -> float:
    """The paper's bound with constant 1: N²C²/M for M ≥ C², N²C/√M below."""
    return rows**2 * width * min(width / capacity, 1 / math.sqrt(capacity))


def compulsory(rows: int, width: int) -> float:
    """Q, K and V are read and O is written: 4NC whatever the algorithm."""
    return 4.0 * rows * width


def any_tiling(rows: int, width: int, capacity: int) -> float:
    """For every algorithm that sums the products of Q Kᵀ term by term, scores spilled or not.

    With X = M a phase sees at most 2M words of Q and K and carries at most 2M unfinished scores:
    at most M²/C products of scores begun and finished in it and √2·M^1.5 (Loomis-Whitney) of the
    others. N²C products need N²C²/(M + √2·C·√M) words, less those of one unfinished phase.
    """
    phases = rows**2 * width**2 / (capacity + math.sqrt(2 * capacity) * width) - capacity
    return max(phases, compulsory(rows, width))


def whole_rows(rows: int, width: int, capacity: int) -> float:
    """For algorithms that use rows of Q, K, V and O whole and never move a score.

    With T = M + X, a phase that computes a scores and adds b weighted rows has a ≤ x², b ≤ y²,
    2(x + y)C ≤ T, and |a − b| ≤ M, since scores that wait must lie in fast memory: at most
    T²/16C² + M²C²/T² scores a phase on average. The best X is taken. For M ≫ C²: 4N²C²/M − M.
    """
    best = compulsory(rows, width)
    for sixteenths in range(4, 65):
        loaded = capacity * sixteenths / 16
        seen = capacity + loaded
        if seen * seen >= 4 * capacity * width * width:
            a_phase = (seen / (4 * width)) ** 2 + (capacity * width / seen) ** 2
            best = max(best, rows**2 * loaded / a_phase - loaded)
    return best
