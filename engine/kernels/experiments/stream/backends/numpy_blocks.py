"""numpy, in blocks that stay in cache so that α·x needs no second pass; one thread."""

import numpy as np

from engine.kernels.experiments.stream.backend import Backend

BLOCK = 8192  # numbers: 64 KiB


def scaled(out_N: np.ndarray, x_N: np.ndarray, factor: float) -> None:
    """out = factor · x."""
    if factor == 1.0:
        np.copyto(out_N, x_N)
    else:
        np.multiply(x_N, factor, out=out_N)


def summed(out_N: np.ndarray, x_N: np.ndarray, y_N: np.ndarray, factor: float) -> None:
    """out = x + factor · y."""
    if factor == 1.0:
        np.add(x_N, y_N, out=out_N)
        return
    product = np.empty(min(BLOCK, len(out_N)))
    for at in range(0, len(out_N), BLOCK):
        part = slice(at, at + BLOCK)
        some = product[: len(out_N[part])]
        np.multiply(y_N[part], factor, out=some)
        np.add(x_N[part], some, out=out_N[part])


BACKEND = Backend(
    name="numpy",
    about="numpy, one thread, in blocks where a product is needed",
    scaled=scaled,
    summed=summed,
    rank=1,
)
