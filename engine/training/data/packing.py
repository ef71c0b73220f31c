"""Examples to train on, packed into rows, and requests packed into one example as a trie.

In rows positions start again with each example, and none sees another's tokens. In a trie what the
requests of a trajectory share is computed once: tokens see their ancestors alone and stand where
they stand on their own path (arXiv 2512.07843). Shape letters: T tokens of an example, L
predictions; B rows, S tokens of a row; N nodes of a trie.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput

ROOT = -1  # the parent of a trie's first node


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


def completed(prompt: Sequence[int], completion: Sequence[int]) -> Example:
    """Read `prompt`, learn to say `completion` (with its end token, if it is to end)."""
    return spoken([*prompt, *completion], [False] * len(prompt) + [True] * len(completion))


def spoken(tokens: Sequence[int], learnt: Sequence[bool | float]) -> Example:
    """Ordinary next-token learning of the tokens that are `learnt` (or by how much each is)."""
    ids_T, weight_T = np.asarray(tokens, np.int64), np.asarray(learnt, np.float32)
    at_L = np.flatnonzero(weight_T[1:])
    return Example(ids_T, at_L, ids_T[at_L + 1], weight_T[at_L + 1])


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

    @property
    def order(self) -> dict[str, Tensor | None]:
        """Of each token its position, whom it sees and its path, by `dense`'s own names."""
        return {
            "positions_BT": self.positions_BS,
            "visible_BTS": self.visible_BSS,
            "paths_BT": self.paths_BS,
        }


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
    rows, places = len(held), list(_places(held))
    tokens_BS, positions_BS, paths_BS = np.zeros((3, rows, length), np.int64)
    visible_BSS = np.zeros((rows, length, length), bool)
    visible_BSS[:, np.arange(length), np.arange(length)] = True
    for row, here, example in places:
        tokens_BS[row, here] = example.tokens_T
        positions_BS[row, here] = _positions(example)
        visible_BSS[row, here, here] = _visible(example)
        paths_BS[row, here] = 0 if example.paths_T is None else example.paths_T
    at = [example.at_L + row * length + here.start for row, here, example in places]
    return Packed(
        torch.from_numpy(tokens_BS),
        torch.from_numpy(positions_BS),
        torch.from_numpy(visible_BSS),
        torch.from_numpy(np.concatenate(at).astype(np.int64)),
        torch.from_numpy(np.concatenate([e.target_L for *_, e in places]).astype(np.int64)),
        torch.from_numpy(np.concatenate([e.weight_L for *_, e in places]).astype(np.float32)),
        torch.from_numpy(paths_BS) if paths_BS.any() else None,
        _blocks(places, rows, length),
    )


Place = tuple[int, slice, Example]  # its row, where it lies there, and the example


def _places(held: list[list[Example]]) -> Iterator[Place]:
    for row, examples in enumerate(held):
        first = 0
        for example in examples:
            yield row, slice(first, first + len(example)), example
            first += len(example)


def _blocks(places: list[Place], rows: int, length: int) -> tuple[Tensor, Tensor] | None:
    """block_BS and shift_BSK; examples of a row may use the same numbers: none sees another."""
    counts = [e.shift_TK.shape[1] for *_, e in places if e.shift_TK is not None]
    if not any(counts):
        return None
    block_BS = np.zeros((rows, length), np.int64)
    shift_BSK = np.zeros((rows, length, max(counts)), np.int64)
    for row, here, example in places:
        if example.block_T is not None and example.shift_TK is not None:
            block_BS[row, here] = example.block_T
            shift_BSK[row, here, : example.shift_TK.shape[1]] = example.shift_TK
    return torch.from_numpy(block_BS), torch.from_numpy(shift_BSK)


def _positions(example: Example) -> np.ndarray:
    return np.arange(len(example)) if example.positions_T is None else example.positions_T


def _visible(example: Example) -> np.ndarray:
    if example.visible_TT is None:
        return np.tri(len(example), dtype=bool)
    return example.visible_TT


class Unit(NamedTuple):
    """What one request read and what it learns to say after it. Neither may be empty."""

    context: Sequence[int]
    completion: Sequence[int]


def trie(units: Iterable[Unit], siblings_apart: bool = True) -> Example:
    """All `units` as one example; its loss and gradients are those of its units apart.

    A prediction that several units learn at one place counts once for each. Without
    `siblings_apart` a token sees whatever lies before it, its siblings too: a mistake, to be seen.
    """
    places: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    parents: list[int] = []
    tokens: list[int] = []
    learnt: dict[tuple[int, int], float] = {}  # (node, token after it) -> weight
    for unit in units:
        node = ROOT
        for place, token in enumerate((*unit.context, *unit.completion)):
            if place >= len(unit.context):
                learnt[node, token] = learnt.get((node, token), 0.0) + 1.0
            before, node = node, places.setdefault((node, token), len(tokens))
            if node == len(tokens):
                tokens.append(token)
                parents.append(before)
    depth_N, sees_NN = _ancestors(parents)
    at_L, target_L = np.array(list(learnt), np.int64).reshape(-1, 2).T
    weight_L = np.array(list(learnt.values()), np.float32)
    if not siblings_apart:
        sees_NN = np.tri(len(tokens), dtype=bool)
    return Example(np.array(tokens, np.int64), at_L, target_L, weight_L, depth_N, sees_NN)


def _ancestors(parents: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Each node's depth, and whom it sees: its ancestors and itself. Parents come first."""
    depth_N = np.zeros(len(parents), np.int64)
    sees_NN = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent != ROOT:
            depth_N[node] = depth_N[parent] + 1
            sees_NN[node] |= sees_NN[parent]
    return depth_N, sees_NN
