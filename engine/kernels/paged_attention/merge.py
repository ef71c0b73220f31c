"""Merging attention over two parts of the keys: exact, associative and commutative.

A partial result is o (the attention over its own keys) and lse (the natural logarithm of the sum of
its scores' exponentials). Some libraries give lse in base 2 (`natural` converts).
"""

import math

import torch
from torch import Tensor


def merge(
    one_o_NE: Tensor, one_N: Tensor, other_o_NE: Tensor, other_N: Tensor
) -> tuple[Tensor, Tensor]:
    """(o_NE, lse_N) over both parts' keys; a part without keys has lse -∞ and changes nothing.

    Milakov and Gimelshein, arXiv 1805.02867, section 3; associative as LeanAttention shows
    (arXiv 2405.10480).
    """
    lse_N = torch.logaddexp(one_N, other_N)
    empty_N = lse_N == -math.inf
    one_weight_N = torch.exp(one_N - lse_N).masked_fill(empty_N, 0.0)
    other_weight_N = torch.exp(other_N - lse_N).masked_fill(empty_N, 0.0)
    return one_o_NE * one_weight_N[:, None] + other_o_NE * other_weight_N[:, None], lse_N


def natural(lse2_N: Tensor) -> Tensor:
    """A base-2 log-sum-exp as a natural one."""
    return lse2_N * math.log(2.0)
