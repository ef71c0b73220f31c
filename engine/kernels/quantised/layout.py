"""A register layout: which thread holds which element of a tile, and where, as an algebra.

`spatial` gives every element a thread of its own, `local` gives one thread all of them; their
product nests one inside the other (Tilus, "algebraic layout system"). A packed weight's layout is
such a product, so the bit at which a code lies is computed here and not looked up in the packer.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.kernels.lanes import LANES
from engine.kernels.quantised.pack import WORD, Packed


@dataclass(frozen=True)
class Layout:
    """`index_TL2`: int64 [threads, locals, 2], the (row, column) of what each place holds."""

    shape: tuple[int, int]
    index_TL2: np.ndarray

    @property
    def threads(self) -> int:
        return len(self.index_TL2)

    @property
    def locals(self) -> int:
        """Elements that a thread holds."""
        return self.index_TL2.shape[1]

    def __matmul__(self, inner: "Layout") -> "Layout":
        """Each element of this layout becomes a tile laid out by `inner`."""
        outer_T1L1 = self.index_TL2[:, None, :, None] * np.array(inner.shape)
        index = outer_T1L1 + inner.index_TL2[None, :, None, :]
        threads, held = self.threads * inner.threads, self.locals * inner.locals
        shape = self.shape[0] * inner.shape[0], self.shape[1] * inner.shape[1]
        return Layout(shape, index.reshape(threads, held, 2))

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Thread and local of every element, both of the tile's shape. Raises BadInput where an
        element lies nowhere or twice."""
        flat = self.index_TL2[..., 0] * self.shape[1] + self.index_TL2[..., 1]
        order = np.argsort(flat, axis=None)
        if not np.array_equal(flat.ravel()[order], np.arange(self.shape[0] * self.shape[1])):
            raise BadInput(f"layout of {self.shape}: its places do not hold each element once")
        thread, local = np.divmod(order, self.locals)
        return thread.reshape(self.shape), local.reshape(self.shape)


def _all(rows: int, columns: int) -> np.ndarray:
    return np.stack(np.divmod(np.arange(rows * columns), columns), axis=-1)


def local(rows: int, columns: int) -> Layout:
    """One thread holds every element, row by row."""
    return Layout((rows, columns), _all(rows, columns)[None, :])


def spatial(rows: int, columns: int) -> Layout:
    """A thread for each element, row by row."""
    return Layout((rows, columns), _all(rows, columns)[:, None])


def panel(weight: Packed) -> Layout:
    """Of a panel of 16 outputs: lanes are threads, which hold block after block of inputs."""
    blocks = weight.blocks_PB.shape[1]
    return local(1, blocks) @ spatial(LANES, 1) @ local(1, weight.depth)


def codes(weight: Packed) -> np.ndarray:
    """uint8 [N, K], each code read from the words at the bits where the layout puts it."""
    of, words = weight.format, weight.blocks_PB[weight.format.name]
    lane_LK, local_LK = panel(weight).places()
    bit_LK = local_LK * of.bits
    first_LK, shift_LK = np.divmod(bit_LK, WORD)
    found = []
    for words_BWL in words:
        flat_WL = words_BWL.reshape(-1, LANES).astype(np.uint64)
        following = np.minimum(first_LK + 1, len(flat_WL) - 1)
        pair = flat_WL[first_LK, lane_LK] | flat_WL[following, lane_LK] << np.uint64(WORD)
        found.append(pair >> shift_LK.astype(np.uint64) & np.uint64(2**of.bits - 1))
    whole = np.concatenate(found).astype(np.uint8)
    return whole[: weight.outputs, : weight.inputs]
