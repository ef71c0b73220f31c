"""GPTQ: a layer's weights rounded one input after another, each error made up by those to come.

Frantar et al., arXiv 2210.17323: the columns that are left take over what a rounded column errs,
by the inverse of the inputs' second moments.
Shape letters: N outputs, K inputs, M rows seen.
"""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.weight import Quantised, nearest, scales_of
from engine.training.quantisation.rounded_model import factor


def in_half(
    weight_NK: np.ndarray, name: str, group: int, zero: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scales and zeros as checkpoints hold them: float16, none below its smallest."""
    scales_NG, zeros_NG = scales_of(weight_NK, format_of(name), group, zero)
    return np.maximum(scales_NG, 6e-8).astype(np.float16).astype(np.float32), zeros_NG


def rounded_to_nearest(weight_NK: Tensor, name: str, group: int, zero: bool) -> Quantised:
    """Each weight to its nearest code at float16 scales."""
    return _codes(weight_NK, name, group, zero, None)


def gptq(
    weight_NK: Tensor, moments_KK: Tensor, name: str, group: int, zero: bool = False
) -> Quantised:
    """The codes of a layer that is fed rows of second moments Σ x xᵀ."""
    return _codes(weight_NK, name, group, zero, factor(moments_KK))


def _codes(
    weight_NK: Tensor, name: str, group: int, zero: bool, upper_KK: Tensor | None
) -> Quantised:
    """Codes by group; with `upper_KK`, the Cholesky factor of the inverse moments, errors go on to
    the inputs after them, and each group's scales are of what it has become by then."""
    of = format_of(name)
    left_NK = weight_NK.detach().float().clone()
    N, K = left_NK.shape
    group = min(group or K, K)
    codes_NK = np.zeros((N, K), np.uint8)
    scales, zeros = [], []
    for start in range(0, K, group):
        stop = min(start + group, K)
        scale_N1, zero_N1 = in_half(left_NK[:, start:stop].numpy(), name, stop - start, zero)
        scales.append(scale_N1)
        zeros.append(np.zeros_like(scale_N1) if zero_N1 is None else zero_N1)
        if upper_KK is None:
            units_NI = left_NK[:, start:stop].numpy() / scale_N1 + zeros[-1]
            codes_NK[:, start:stop] = nearest(units_NI, of)
            continue
        for k in range(start, stop):
            column_N = left_NK[:, k].numpy()
            codes_N = nearest(column_N / scale_N1[:, 0] + zeros[-1][:, 0], of)
            codes_NK[:, k] = codes_N
            held_N = (of.values[codes_N] - zeros[-1][:, 0]) * scale_N1[:, 0]
            error_N = (left_NK[:, k] - torch.from_numpy(held_N)) / upper_KK[k, k]
            left_NK[:, k + 1 :] -= torch.outer(error_N, upper_KK[k, k + 1 :])
    zeros_NG = np.concatenate(zeros, axis=1)
    return Quantised(
        of, codes_NK, np.concatenate(scales, axis=1), zeros_NG if zeros_NG.any() else None, group
    )
