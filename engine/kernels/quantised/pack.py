"""A quantised weight as it lies in memory: panels of 16 outputs, blocks of inputs, 32-bit words.

A lane's codes of a block follow each other bit by bit, over the ends of words where the width asks
for it, so any width from 1 to 8 takes that many bits and no more. Block and width are the element
type of the array: a field named after the format, of `words` rows of 16 lanes.
Shape letters: N outputs, K inputs, P panels, B blocks, D inputs of a block, W its words, L = 16
lanes, G groups.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import aligned
from engine.kernels.quantised.formats import Format, format_of
from engine.kernels.quantised.weight import Quantised

TOGETHER = 4  # panels that a task reads side by side: their number is a multiple of it
WORD = 32


def block_dtype(of: Format, words: int) -> np.dtype:
    """The element type of `Packed.blocks`."""
    return np.dtype([(of.name, "<u4", (words, LANES))])


@dataclass(frozen=True, slots=True)
class Packed:
    """`blocks` [P, B] of `block_dtype`; `scales_PGL`, `zeros_PGL` float32 (no zeros where None).

    Scales hold the format's factor (`Format.factor`); outputs and inputs beyond the weight's are 0.
    """

    blocks_PB: np.ndarray
    scales_PGL: np.ndarray
    zeros_PGL: np.ndarray | None
    outputs: int
    inputs: int
    group: int

    @property
    def format(self) -> Format:
        names = self.blocks_PB.dtype.names
        assert names
        return format_of(names[0])

    @property
    def words(self) -> int:
        """Words of a lane's block."""
        return self.blocks_PB.dtype.itemsize // (4 * LANES)

    @property
    def depth(self) -> int:
        """Inputs of a block."""
        return WORD * self.words // self.format.bits

    @property
    def bytes(self) -> int:
        """Bytes a pass over the weight reads."""
        zeros = 0 if self.zeros_PGL is None else self.zeros_PGL.nbytes
        return self.blocks_PB.nbytes + self.scales_PGL.nbytes + zeros

    def unpacked(self) -> Quantised:
        """The codes, scales and zeros again."""
        of, depth = self.format, self.depth
        panels, blocks = self.blocks_PB.shape
        words = self.blocks_PB[of.name].transpose(0, 3, 1, 2)  # [P, L, B, W]
        raw = np.ascontiguousarray(words).view(np.uint8).reshape(panels * LANES, blocks, -1)
        bits = np.unpackbits(raw, axis=2, bitorder="little")
        each = bits.reshape(panels * LANES, blocks * depth, of.bits)
        codes = np.packbits(each, axis=2, bitorder="little")[..., 0][: self.outputs, : self.inputs]
        scales = _rows(self.scales_PGL)[: self.outputs] * np.float32(1 / of.factor)
        zeros = None
        if self.zeros_PGL is not None:
            zeros = _rows(self.zeros_PGL)[: self.outputs] * np.float32(of.factor)
        return Quantised(of, np.ascontiguousarray(codes), scales, zeros, self.group)


def _rows(by_panel_PGL: np.ndarray) -> np.ndarray:
    panels, groups, _ = by_panel_PGL.shape
    return np.ascontiguousarray(by_panel_PGL.transpose(0, 2, 1)).reshape(panels * LANES, groups)


def words_of(of: Format, group: int) -> int:
    """Words of a lane's block: 32 inputs, or 16 where groups are of an odd number of sixteens.

    Raises BadInput where a group ends inside a block.
    """
    if group % WORD == 0:
        return of.bits
    if group % 16 == 0 and of.bits % 2 == 0:
        return of.bits // 2
    raise BadInput(f"groups of {group} inputs at {of.bits} bits: give a multiple of 32")


def pack(weight: Quantised) -> Packed:
    """Lay out a weight. Raises BadInput for groups that blocks do not divide."""
    of, (N, K) = weight.format, weight.shape
    group = weight.group if weight.group < K else -(-K // WORD) * WORD  # one group: any length
    words = words_of(of, group)
    depth = WORD * words // of.bits
    panels = -(-N // (LANES * TOGETHER)) * TOGETHER
    blocks = -(-K // depth)
    wide_NK = np.zeros((panels * LANES, blocks * depth), np.uint8)
    wide_NK[:N, :K] = weight.codes_NK
    out = aligned(panels * blocks * words * LANES, np.uint32).reshape(panels, blocks, words, LANES)
    for panel in range(panels):  # one at a time: bits take eight times the room
        rows_LBD = wide_NK[panel * LANES : (panel + 1) * LANES].reshape(LANES, blocks, depth)
        bits = np.unpackbits(rows_LBD[..., None], axis=3, bitorder="little", count=of.bits)
        flat = np.packbits(bits.reshape(LANES, blocks, -1), axis=2, bitorder="little")
        out[panel] = flat.view("<u4").reshape(LANES, blocks, words).transpose(1, 2, 0)
    held = out.reshape(-1).view(block_dtype(of, words)).reshape(panels, blocks)
    scales_PGL = _panels(weight.scales_NG * np.float32(of.factor), panels)
    zeros = weight.zeros_NG
    zeros_PGL = None if zeros is None else _panels(zeros * np.float32(1 / of.factor), panels)
    return Packed(held, scales_PGL, zeros_PGL, N, K, group)


def _panels(rows_NG: np.ndarray, panels: int) -> np.ndarray:
    N, groups = rows_NG.shape
    wide = np.zeros((panels * LANES, groups), np.float32)
    wide[:N] = rows_NG
    return np.ascontiguousarray(wide.reshape(panels, LANES, groups).transpose(0, 2, 1))
