"""The kernels of attention as two tiled matrix products: scores into slow memory, then P·V.

Scores are written once with their rows' maxima and sums, and read by each tile of the output.
"""

import math

from engine.kernels.compiled import checked
from engine.kernels.experiments.attention_io.memory import (
    KEY,
    OUTPUT,
    QUERY,
    SCORE,
    STATISTIC,
    VALUE,
    load,
    store,
)


@checked
def scores_by_rows(memory, rows, width, block, steps):
    """Q Kᵀ/√C with `block` rows of Q in fast memory: then maxima, sums, scores, one word."""
    fast, moved = memory[0], memory[2]
    size = rows * width
    top = block * width
    total, score, word = top + block, top + 2 * block, top + 3 * block
    statistics, scores = 4 * size, 4 * size + 2 * rows
    scale = 1.0 / math.sqrt(width)
    for step in range(steps.shape[0]):
        first = step * block
        here = min(block, rows - first)
        load(memory, QUERY, first * width, 0, here * width)
        for r in range(here):
            fast[top + r] = -math.inf
            fast[total + r] = 0.0
        for j in range(rows):
            for r in range(here):
                fast[score + r] = 0.0
            for c in range(width):
                load(memory, KEY, size + j * width + c, word, 1)
                for r in range(here):
                    fast[score + r] += fast[r * width + c] * fast[word]
            for r in range(here):
                found = fast[score + r] * scale
                fast[score + r] = found
                if found > fast[top + r]:
                    fast[total + r] *= math.exp(fast[top + r] - found)
                    fast[top + r] = found
                fast[total + r] += math.exp(found - fast[top + r])
                store(memory, SCORE, score + r, scores + (first + r) * rows + j, 1)
        store(memory, STATISTIC, top, statistics + first, here)
        store(memory, STATISTIC, total, statistics + rows + first, here)
        for which in range(moved.shape[0]):
            steps[step, which] = moved[which, 0] + moved[which, 1]


@checked
def scores_by_squares(memory, rows, width, block, steps):
    """Q Kᵀ/√C in tiles of `block`² scores: the tile, maxima, sums, a column of Q, one word."""
    fast, moved = memory[0], memory[2]
    size = rows * width
    top = block * block
    total, column, word = top + block, top + 2 * block, top + 3 * block
    statistics, scores = 4 * size, 4 * size + 2 * rows
    scale = 1.0 / math.sqrt(width)
    for step in range(steps.shape[0]):
        first = step * block
        here = min(block, rows - first)
        for r in range(here):
            fast[top + r] = -math.inf
            fast[total + r] = 0.0
        for start in range(0, rows, block):
            across = min(block, rows - start)
            for i in range(block * block):
                fast[i] = 0.0
            for c in range(width):
                for r in range(here):
                    load(memory, QUERY, (first + r) * width + c, column + r, 1)
                for j in range(across):
                    load(memory, KEY, size + (start + j) * width + c, word, 1)
                    for r in range(here):
                        fast[r * block + j] += fast[column + r] * fast[word]
            for r in range(here):
                for j in range(across):
                    found = fast[r * block + j] * scale
                    fast[r * block + j] = found
                    if found > fast[top + r]:
                        fast[total + r] *= math.exp(fast[top + r] - found)
                        fast[top + r] = found
                    fast[total + r] += math.exp(found - fast[top + r])
                store(memory, SCORE, r * block, scores + (first + r) * rows + start, across)
        store(memory, STATISTIC, top, statistics + first, here)
        store(memory, STATISTIC, total, statistics + rows + first, here)
        for which in range(moved.shape[0]):
            steps[step, which] = moved[which, 0] + moved[which, 1]


@checked
def outputs(memory, rows, width, block, across, steps):
    """softmax(scores) V in tiles of `block` rows by `across` columns: tile, maxima, sums, a column
    of scores, one word."""
    fast, moved = memory[0], memory[2]
    size = rows * width
    top = block * across
    total, score, word = top + block, top + 2 * block, top + 3 * block
    statistics, scores = 4 * size, 4 * size + 2 * rows
    for step in range(steps.shape[0]):
        first = step * block
        here = min(block, rows - first)
        load(memory, STATISTIC, statistics + first, top, here)
        load(memory, STATISTIC, statistics + rows + first, total, here)
        for start in range(0, width, across):
            wide = min(across, width - start)
            for i in range(block * across):
                fast[i] = 0.0
            for j in range(rows):
                for r in range(here):
                    load(memory, SCORE, scores + (first + r) * rows + j, score + r, 1)
                    weight = math.exp(fast[score + r] - fast[top + r]) / fast[total + r]
                    fast[score + r] = weight
                for c in range(wide):
                    load(memory, VALUE, 2 * size + j * width + start + c, word, 1)
                    for r in range(here):
                        fast[r * across + c] += fast[score + r] * fast[word]
            for r in range(here):
                at = 3 * size + (first + r) * width + start
                store(memory, OUTPUT, r * across, at, wide)
        for which in range(moved.shape[0]):
            steps[step, which] = moved[which, 0] + moved[which, 1]
