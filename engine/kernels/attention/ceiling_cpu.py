"""How fast attention's multiply-add tile goes where nothing else is to be done: data in the first
cache, no softmax. It bounds what the tiled kernels can reach."""

import numpy as np
from numba import get_num_threads, prange

from engine.kernels.attention.product_cpu import BLOCK, product
from engine.kernels.compiled import kernel
from engine.kernels.matmul.pack import aligned


@kernel
def _products(x, w, y, depth, rounds, parts):
    for index in prange(parts):
        part = np.int64(index)
        at = part * BLOCK * depth
        for _ in range(rounds):
            product(x, at, depth, 1, BLOCK, w, at, depth, y, part * BLOCK * BLOCK, False)


def products(depth: int, rounds: int) -> float:
    """Multiply `rounds` blocks of [BLOCK, depth] by [depth, BLOCK] on each thread; flops done."""
    threads = get_num_threads()
    x, w = (aligned(threads * BLOCK * depth, np.float32) for _ in range(2))
    _products(x, w, aligned(threads * BLOCK * BLOCK, np.float32), depth, rounds, threads)
    return 2.0 * threads * rounds * BLOCK * BLOCK * depth
