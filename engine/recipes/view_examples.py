"""Examples of workers who share a queue of squares through each other's cache.

In come a problem and the names of the workers; out comes what each of them writes, step by step,
and an `Example` in which every token sees what its writer saw then: the prompt, the others' words
up to the same step, then its own (the contiguous layout of `engine.reasoning`).
"""

import string
from collections.abc import Callable, Sequence

import numpy as np

from engine.tasks.square_queue import QueueProblem
from engine.training.data.packing import Example

WAIT = "-"  # said a different number of times, so that no two look for work in the same step


def written(problem: QueueProblem, waits: Sequence[int]) -> list[str]:
    """What workers who wait so many steps say, side by side: each takes the first entry nobody has.

    A worker who says a letter has taken it; the others see that one step later.
    """
    workers = len(waits)
    said = ["" for _ in waits]
    ahead = [WAIT * wait for wait in waits]
    working = [True] * workers
    while any(working):
        taken = sum(text.count(letter) for text in said for letter in string.ascii_lowercase)
        for number in range(workers):
            if not ahead[number] and working[number]:
                working[number] = taken < len(problem.entries)
                ahead[number] = problem.said(taken) if working[number] else ""
        for number in range(workers):
            said[number] += ahead[number][:1]
            ahead[number] = ahead[number][1:]
    return said


def example(
    problem: QueueProblem, names: dict[str, int], encode: Callable[[str], list[int]], end: int
) -> Example:
    """Each worker (name and wait) begins with its name, learns to say its part and then `end`."""
    prompt, texts = encode(problem.prompt), written(problem, list(names.values()))
    said = [encode(name) + encode(text) for name, text in zip(names, texts, strict=True)]
    blocks = [prompt, *said]
    block_T = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    index_T = np.concatenate([np.arange(len(block)) for block in blocks])
    visible_TT = (block_T[None] == 0) | (index_T[None] <= index_T[:, None])
    visible_TT[block_T == 0] &= block_T == 0
    visible_TT &= (block_T[None] != block_T[:, None]) | (index_T[None] <= index_T[:, None])
    tokens_T = np.concatenate(blocks).astype(np.int64)
    speaks_L = np.flatnonzero(block_T > 0)
    target_L = np.concatenate([[*block[1:], end] for block in said]).astype(np.int64)
    weight_L = np.ones(len(speaks_L), np.float32)
    return Example(
        tokens_T, speaks_L, target_L, weight_L, index_T, visible_TT,
        block_T=block_T, shift_TK=_shifts(block_T, index_T, [len(block) for block in blocks]),
    )  # fmt: skip


def _shifts(block_T: np.ndarray, index_T: np.ndarray, lengths: list[int]) -> np.ndarray:
    """shift_TK: how far before its own block each token's writer saw block k begin, then."""
    count = len(lengths)
    length_TK = np.minimum(np.array(lengths)[None], index_T[:, None] + 1)
    length_TK[:, 0] = lengths[0]
    own_TK = block_T[:, None] == np.arange(count)[None]
    length_TK[own_TK] = 0  # it stands last: nothing is behind it
    begin_TK = np.cumsum(length_TK, 1) - length_TK
    shift_TK = length_TK.sum(1, keepdims=True) - begin_TK
    shift_TK[own_TK] = 0
    shift_TK[block_T == 0] = 0
    return shift_TK
