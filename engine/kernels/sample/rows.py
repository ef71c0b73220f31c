"""Sampling on a GPU (Triton): a program a row, with the same draws as the processor's kernel."""

import torch
import triton
from torch import Tensor

from engine.kernels.operator import Variant
from engine.kernels.triton_source import kernels

BLOCK = 1024  # logits that a program looks at together


def draw(logits_RV: Tensor, **how: Tensor) -> tuple[Tensor, Tensor]:
    """(token_R, logprob_R), as `engine.kernels.sample.plain.draw` says."""
    logits = logits_RV.contiguous()
    rows, vocab = logits.shape
    device = logits.device
    token_R = torch.empty(rows, dtype=torch.int32, device=device)
    logprob_R = torch.empty(rows, dtype=torch.float32, device=device)
    if rows:
        order = ("temperature_R", "top_k_R", "top_p_R", "min_p_R", "seed_R", "position_R")
        columns = [how[name].contiguous() for name in order]
        scratch = torch.empty(rows, vocab, dtype=torch.float64, device=device)
        kernels("engine.kernels.sample.rows_triton", not logits.is_cuda).sample[(rows,)](
            logits, *columns, scratch, token_R, logprob_R, vocab,
            BLOCK=min(BLOCK, triton.next_power_of_2(vocab)),
        )  # fmt: skip
    return token_R, logprob_R


VARIANT = Variant(
    name="rows",
    about="a program a row; the same draws from the same seeds as on the processor",
    device="cuda",
    call=draw,
    dtypes=("float32", "bfloat16", "float16"),
    interpreted=True,
)
