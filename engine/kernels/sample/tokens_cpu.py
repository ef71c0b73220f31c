"""Sampling, a row a task (numba), as a variant of the operator: what the engine's sampler calls."""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.operator import Variant
from engine.kernels.sample import rows_cpu
from engine.kernels.sample.plain import wishes


def draw(logits_RV: Tensor, **how: Tensor) -> tuple[Tensor, Tensor]:
    """(token_R, logprob_R), as `engine.kernels.sample.plain.draw` says."""
    logits = np.ascontiguousarray(logits_RV.detach().float().numpy())
    rows = np.arange(len(logits))
    best_R, logprob_R = rows_cpu.greedy(logits)
    token_R = rows_cpu.sample(logits, wishes(**how))
    logprob_R += logits[rows, token_R] - logits[rows, best_R]
    return torch.from_numpy(token_R), torch.from_numpy(logprob_R)


VARIANT = Variant(
    name="tokens_cpu",
    about="a row a task; cuts by halving over the weights' bits, no sort",
    device="cpu",
    call=draw,
    dtypes=("float32", "bfloat16", "float16"),
)
