"""The kernel of FlashAttention's tiling: query rows and their output stay, keys and values pass.

Fast memory, in this order: R rows of Q, R rows of O, R maxima, R sums, R scores, one streamed word,
then P pairs of K and V rows that stay. Everything a row needs is done when it leaves.
"""

import math

from engine.kernels.compiled import checked
from engine.kernels.experiments.attention_io.memory import KEY, OUTPUT, QUERY, VALUE, load, store


@checked
def attend_online(memory, rows, width, block, pinned, rescales, steps):
    """`rows` of attention, `block` query rows at a time; the first `pinned` keys stay loaded.

    `rescales` False leaves out the correction of O when a larger score arrives, which is wrong.
    `steps` [blocks, arrays]: words moved so far at the end of each block.
    """
    fast, moved = memory[0], memory[2]
    size = rows * width
    out = block * width
    top, total, score = 2 * out, 2 * out + block, 2 * out + 2 * block
    word = score + block
    pin = word + 1
    scale = 1.0 / math.sqrt(width)
    for step in range(steps.shape[0]):
        first = step * block
        here = min(block, rows - first)
        load(memory, QUERY, first * width, 0, here * width)
        for r in range(here):
            fast[top + r] = -math.inf
            fast[total + r] = 0.0
            for c in range(width):
                fast[out + r * width + c] = 0.0
        for j in range(rows):
            at = pin + 2 * j * width
            if j < pinned and step == 0:
                load(memory, KEY, size + j * width, at, width)
                load(memory, VALUE, 2 * size + j * width, at + width, width)
            for r in range(here):
                fast[score + r] = 0.0
            for c in range(width):
                source = at + c
                if j >= pinned:
                    source = word
                    load(memory, KEY, size + j * width + c, word, 1)
                for r in range(here):
                    fast[score + r] += fast[r * width + c] * fast[source]
            for r in range(here):
                found = fast[score + r] * scale
                if found > fast[top + r]:
                    shrink = math.exp(fast[top + r] - found)
                    if not rescales:
                        shrink = 1.0
                    fast[total + r] *= shrink
                    for c in range(width):
                        fast[out + r * width + c] *= shrink
                    fast[top + r] = found
                fast[score + r] = math.exp(found - fast[top + r])
                fast[total + r] += fast[score + r]
            for c in range(width):
                source = at + width + c
                if j >= pinned:
                    source = word
                    load(memory, VALUE, 2 * size + j * width + c, word, 1)
                for r in range(here):
                    fast[out + r * width + c] += fast[score + r] * fast[source]
        for r in range(here):
            for c in range(width):
                fast[out + r * width + c] /= fast[total + r]
        store(memory, OUTPUT, out, 3 * size + first * width, here * width)
        for which in range(moved.shape[0]):
            steps[step, which] = moved[which, 0] + moved[which, 1]
