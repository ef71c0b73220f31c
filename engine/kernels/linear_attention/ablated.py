"""Chunkwise gated linear attention with a part left out: its second level, or its state."""

import torch
from torch import Tensor

from engine.kernels.linear_attention import chunkwise_cpu

STRETCH = 256  # tokens


def unsplit(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """As the reference where gates are mild: (outputs, last state), in the arguments' dtype.

    One level only: decays inside a chunk are split into e^b for the query and e^-b for the key (b:
    gates summed from the chunk's start), so that one matrix product gives all scores of a chunk.
    With strong gates e^-b overflows (Yang et al., arXiv 2312.06635).
    """
    outputs, state = [], state_BHKV
    for start in range(0, q_BHTK.shape[2], chunk):
        cut = slice(start, start + chunk)
        q, k, v = q_BHTK[:, :, cut] * scale, k_BHTK[:, :, cut], v_BHTV[:, :, cut]
        total = log_gate_BHTK[:, :, cut].cumsum(2)
        scores = (q * total.exp()) @ (k * (-total).exp()).mT
        outputs.append(scores.tril() @ v + (q * total.exp()) @ state)
        left = (total[:, :, -1:] - total).exp()
        state = total[:, :, -1].exp().unsqueeze(-1) * state + (k * left).mT @ v
    return torch.cat(outputs, 2), state


def restarted(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
    chunk: int = chunkwise_cpu.CHUNK,
    sub_chunk: int = chunkwise_cpu.SUB_CHUNK,
) -> tuple[Tensor, Tensor]:
    """As `chunkwise_cpu`, but no state is carried: every stretch of tokens makes the one before it
    anew from the first token on, so time grows with the square of the length."""
    outputs, last = [], state_BHKV
    for start in range(0, q_BHTK.shape[2], STRETCH):
        seen = slice(0, start + STRETCH)
        q, k, v, gate = (x[:, :, seen] for x in (q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK))
        o_BHSV, last = chunkwise_cpu.gated_linear_attention(
            q, k, v, gate, state_BHKV, scale, chunk, sub_chunk
        )
        outputs.append(o_BHSV[:, :, start:])
    return torch.cat(outputs, 2), last
