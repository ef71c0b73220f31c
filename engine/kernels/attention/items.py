"""The work items of a problem under a split, and what its kernels move."""

import numpy as np

from engine.kernels.attention.policy import Item, Split
from engine.kernels.attention.problem import Problem
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import key_pairs, pairs
from engine.kernels.attention.work import tile_bytes


def query_items(problem: Problem, split: Split) -> list[Item]:
    """Items of queries: each block's own pairs."""
    cost = [
        [pairs(first, min(BLOCK, n - first), n, n, problem.causal) for first in range(0, n, BLOCK)]
        for n in problem.lengths
    ]
    groups = split.groups(problem.lengths, problem.heads, problem.causal)
    return [_item("q", tasks, cost) for tasks in groups]


def key_items(problem: Problem, split: Split) -> list[Item]:
    """Items of keys: the pairs a block is seen in, by all query heads it serves."""
    cost = [
        [
            problem.share * key_pairs(first, min(BLOCK, n - first), n, n, problem.causal)
            for first in range(0, n, BLOCK)
        ]
        for n in problem.lengths
    ]
    groups = split.groups(problem.lengths, problem.kv_heads, False)
    return [_item("k", tasks, cost) for tasks in groups]


def _item(what: str, tasks: np.ndarray, cost: list[list[int]]) -> Item:
    """Its label and cost; `cost` is by sequence and block."""
    blocks = tasks.tolist()
    b, head, first = blocks[0]
    spent = sum(cost[sequence][row // BLOCK] for sequence, _, row in blocks)
    return Item(f"{what}{b}.{head}.{first}", tasks, spent)


def costs(problem: Problem, pairs: int, queries: int, keys: int) -> tuple[float, float]:
    """Bytes that must move when so many tensors of queries and of keys are touched once (and lse),
    and bytes that tiles of BLOCK rows move."""
    T, H, D = problem.tokens, problem.heads, problem.dim
    size = 4 * T * D * (queries * H + keys * problem.kv_heads) + 4 * T * H
    return float(size), tile_bytes(pairs // H, T, H, D, D, BLOCK)
