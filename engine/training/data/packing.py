"""Examples packed into rows: positions start again with each, and none sees another's tokens.

Shape letters: T tokens of an example, L predictions; B rows, S tokens of a row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Tokens and what to predict from them.

    The logits at `at_L` (places among the tokens) shall predict `target_L`, weighted by `weight_L`;
    one place may have several targets, as in a trie. `positions_T`: 0, 1, 2 … if None.
    `visible_TT[i, j]`: token i sees token j; causal if None. Every token has to see itself.
    `paths_T`: the path of thought each token is in, 0 for none; all 0 if None.
    `block_T`: the block of cache each token lies in, `positions_T` counting in it; `shift_TK`: how
    far before its own block the token's writer saw block k begin. One block, at its place, if None.
    """

    tokens_T: np.ndarray
    at_L: np.ndarray
    target_L: np.ndarray
    weight_L: np.ndarray
    positions_T: np.ndarray | None = None
    visible_TT: np.ndarray | None = None
    paths_T: np.ndarray | None = None
    block_T: np.ndarray | None = None
    shift_TK: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.tokens_T)


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Rows as `dense` takes them; `at_L` counts places over all rows. Padding sees only itself."""

    tokens_BS: Tensor
    positions_BS: Tensor
    visible_BSS: Tensor
    at_L: Tensor
    target_L: Tensor
    weight_L: Tensor
    paths_BS: Tensor | None = None  # where any example has paths
    blocks: tuple[Tensor, Tensor] | None = None  # block_BS, shift_BSK where any example has blocks


def packs(examples: Iterable[Example], rows: int, length: int) -> Iterator[Packed]:
    """All `examples` in order, `rows` rows at a time; the last pack may have fewer.

    A row ends where the next example does not fit. Raises BadInput for an example longer than a
    row.
    """
    held: list[list[Example]] = []
    filled = length
    for example in examples:
        size = len(example)
        if size > length:
            raise BadInput(f"an example of {size} tokens does not fit a window of {length}")
        if filled + size > length:
            if len(held) == rows:
                yield _packed(held, length)
                held = []
            held.append([])
            filled = 0
        held[-1].append(example)
        filled += size
    if held:
        yield _packed(held, length)


def _packed(held: list[list[Example]], length: int) -> Packed:
    rows = len(held)
    tokens_BS = np.zeros((rows, length), np.int64)
    positions_BS = np.zeros((rows, length), np.int64)
    visible_BSS = np.zeros((rows, length, length), bool)
    visible_BSS[:, np.arange(length), np.arange(length)] = True
    paths_BS = np.zeros((rows, length), np.int64)
    at: list[np.ndarray] = []
    for row, examples in enumerate(held):
        first = 0
        for example in examples:
            here = slice(first, first + len(example))
            tokens_BS[row, here] = example.tokens_T
            positions_BS[row, here] = _positions(example)
            visible_BSS[row, here, here] = _visible(example)
            paths_BS[row, here] = 0 if example.paths_T is None else example.paths_T
            at.append(example.at_L + row * length + first)
            first += len(example)
    every = [example for examples in held for example in examples]
    return Packed(
        torch.from_numpy(tokens_BS),
        torch.from_numpy(positions_BS),
        torch.from_numpy(visible_BSS),
        torch.from_numpy(np.concatenate(at).astype(np.int64)),
        torch.from_numpy(np.concatenate([e.target_L for e in every]).astype(np.int64)),
        torch.from_numpy(np.concatenate([e.weight_L for e in every]).astype(np.float32)),
        torch.from_numpy(paths_BS) if paths_BS.any() else None,
        _blocks(held, length),
    )


def _blocks(held: list[list[Example]], length: int) -> tuple[Tensor, Tensor] | None:
    """block_BS and shift_BSK; examples of a row may use the same numbers: none sees another."""
    count = max(
        (e.shift_TK.shape[1] for row in held for e in row if e.shift_TK is not None), default=0
    )
    if not count:
        return None
    block_BS = np.zeros((len(held), length), np.int64)
    shift_BSK = np.zeros((len(held), length, count), np.int64)
    for row, examples in enumerate(held):
        first = 0
        for example in examples:
            here = slice(first, first + len(example))
            if example.block_T is not None and example.shift_TK is not None:
                block_BS[row, here] = example.block_T
                shift_BSK[row, here, : example.shift_TK.shape[1]] = example.shift_TK
            first += len(example)
    return torch.from_numpy(block_BS), torch.from_numpy(shift_BSK)


def _positions(example: Example) -> np.ndarray:
    return np.arange(len(example)) if example.positions_T is None else example.positions_T


def _visible(example: Example) -> np.ndarray:
    if example.visible_TT is None:
        return np.tri(len(example), dtype=bool)
    return example.visible_TT
