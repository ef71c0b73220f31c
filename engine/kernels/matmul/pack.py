"""A linear layer's weight laid out for the tile kernel: panels of 16 outputs, k running down.

Shape letters: N outputs, K inputs, P = ⌈N/16⌉ panels, L = 16 lanes.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.kernels.lanes import LANES

ALIGN = 64  # bytes: a cache line, and a full vector


@dataclass(frozen=True, slots=True)
class Packed:
    """`data`: float32 [P, K, L] flat, or bfloat16 pairs as uint32 [P, ⌈K/2⌉, L] flat."""

    data: np.ndarray
    outputs: int
    inputs: int

    @property
    def panels(self) -> int:
        """How many panels of 16 outputs."""
        return -(-self.outputs // LANES)

    @property
    def bytes(self) -> int:
        """Bytes a pass over the weight reads."""
        return self.data.nbytes


def aligned(count: int, dtype: np.dtype | type, filled: bool = True) -> np.ndarray:
    """Zeros (not `filled`: anything) from a cache line on, behind which another can be read."""
    size = np.dtype(dtype).itemsize * count
    raw = (np.zeros if filled else np.empty)(size + 2 * ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size].view(dtype)


def packed_length(outputs: int, inputs: int, half: bool) -> int:
    """Elements of `Packed.data`."""
    return -(-outputs // LANES) * LANES * ((inputs + 1) // 2 if half else inputs)


def pack(weight_NK: Tensor, into: np.ndarray | None = None) -> Packed:
    """Lay out a weight; bfloat16 stays bfloat16, anything else becomes float32.

    `into`, if given, is the flat array to fill (of `packed_length`); outputs beyond N read as zero.
    """
    N, K = weight_NK.shape
    half = weight_NK.dtype == torch.bfloat16
    if into is None:
        into = aligned(packed_length(N, K, half), np.uint32 if half else np.float32)
    if half:
        bits_NK = weight_NK.detach().contiguous().view(torch.int16).numpy().view(np.uint16)
        _fill(into.view(np.uint16), bits_NK, pair=2)
    else:
        _fill(into, weight_NK.detach().float().numpy(), pair=1)
    return Packed(into, N, K)


def _fill(flat: np.ndarray, w_NK: np.ndarray, pair: int) -> None:
    N, K = w_NK.shape
    full, steps = N // LANES, -(-K // pair)
    out_PKLJ = flat.reshape(-1, steps, LANES, pair)
    for first in range(pair):  # k = pair · step + first
        part_NK = w_NK[:, first::pair]
        S = part_NK.shape[1]
        whole_PLK = part_NK[: full * LANES].reshape(full, LANES, S)
        out_PKLJ[:full, :S, :, first] = whole_PLK.transpose(0, 2, 1)
        if N % LANES:
            out_PKLJ[full, :S, : N % LANES, first] = part_NK[full * LANES :].T
