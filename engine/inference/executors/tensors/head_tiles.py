"""Attention tiles: a head's weights as pictures of 256 by 256 cells, pooled by zoom.

A cell of level z stands for 2^z queries by 2^z keys. Pooled are the largest weight (`most`), or the
share of a query's attention that goes to these keys, in the mean of the queries (`mass`). A byte of
a tile is 0 where no key is seen, else 1 to 255 by the logarithm, from 10^-DECADES to 1.

Shape letters: N tokens, R and C rows and columns, S sampled queries.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch

from engine.core.errors import BadInput
from engine.inference.executors.tensors.sequence_attention import ROWS, SequenceAttention

CELLS = 256  # of a tile's side
BASE = 4  # the level kept of a head, where the sequence is long enough to need it
HEADS = 8  # whose base levels are kept; the least recently used goes first
DECADES = 5.0
SMALL, SAMPLES = 48, 4  # cells of a thumbnail's side; queries sampled for a row of it
HOW = ("most", "mass")


@dataclass(frozen=True, slots=True)
class Grid:
    """Every head at a glance. `thumbs`: uint8 [layers, heads, side, side], a side of SMALL cells or
    fewer; `sinks`: (key, share of all attention) of the key that gets most in each head;
    `sampled`: queries looked at."""

    thumbs: np.ndarray
    sinks: list[list[tuple[int, float]]]
    sampled: int


@dataclass(slots=True)
class _Head:
    """What is kept of a head. `most`, `mass`: its base level; `received_N`: the share of all
    attention that each key gets."""

    lse_N: np.ndarray
    most: np.ndarray
    mass: np.ndarray
    received_N: np.ndarray


def as_bytes(weights: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """uint8: 0 where nothing is seen, else by the logarithm of the weight."""
    shade = 1.0 + np.log10(np.maximum(weights, 10.0**-DECADES)) / DECADES
    return np.where(seen, 1 + np.round(254 * np.minimum(shade, 1.0)), 0).astype(np.uint8)


def pooled(weights_RC: np.ndarray, by: int, how: str) -> np.ndarray:
    """Cells of `by` rows and columns: the largest, or the sum over columns, mean over rows."""
    rows, columns = weights_RC.shape
    if by == 1:
        return weights_RC
    down, right = -(-rows // by), -(-columns // by)
    padded = np.zeros((down * by, right * by), np.float32)
    padded[:rows, :columns] = weights_RC
    cells = padded.reshape(down, by, right, by)
    if how == "most":
        return np.asarray(cells.max((1, 3)))
    counts = np.full(down, by, np.float32)
    counts[-1] = rows - (down - 1) * by
    return np.asarray(cells.sum((1, 3)) / counts[:, None])


class AttentionTiles:
    """Tiles of any head of a sequence, made when they are asked for. Safe to ask from threads."""

    def __init__(self, of: SequenceAttention) -> None:
        self.of = of
        self.top = max(0, int(np.ceil(np.log2(of.tokens / CELLS)))) if of.tokens > CELLS else 0
        self.base = min(BASE, self.top)
        self._heads: OrderedDict[tuple[int, int], _Head] = OrderedDict()
        self._lock = threading.Lock()

    def tile(self, layer: int, head: int, level: int, row: int, column: int, how: str) -> bytes:
        """One tile, CELLS² bytes, row by row. Raises BadInput for what there is not."""
        self._check(layer, head)
        across = -(-self.of.tokens // (CELLS << max(0, min(level, self.top))))
        fits = 0 <= level <= self.top and 0 <= row < across and 0 <= column < across
        if not fits or how not in HOW:
            raise BadInput(
                f"tile: level 0 to {self.top}, {across} tiles a side, {' or '.join(HOW)}"
            )
        made = np.zeros((CELLS, CELLS), np.uint8)
        if column > row:
            return made.tobytes()  # keys that come after every query
        with self._lock:
            kept = self._head(layer, head)
            cells = self._cells(kept, layer, head, level, row, column, how)
        down, right = cells.shape
        at_R = (row * CELLS + np.arange(down))[:, None]
        at_C = (column * CELLS + np.arange(right))[None]
        made[:down, :right] = as_bytes(cells, at_C <= at_R)
        return made.tobytes()

    def received(self, layer: int, head: int) -> np.ndarray:
        """received_N float32: the share of all the head's attention that each key gets."""
        self._check(layer, head)
        with self._lock:
            return self._head(layer, head).received_N

    def grid(self) -> Grid:
        """Every head, from a few sampled queries of each row where there are many."""
        of, tokens = self.of, self.of.tokens
        side = min(SMALL, tokens)
        edges = np.linspace(0, tokens, side + 1).astype(int)
        picked = [np.unique(np.linspace(a, b - 1, SAMPLES).astype(int))
                  for a, b in zip(edges, edges[1:], strict=False)]  # fmt: skip
        rows_S, starts = np.concatenate(picked), np.cumsum([0, *map(len, picked)])[:-1]
        thumbs = np.zeros((of.layers, of.heads, side, side), np.uint8)
        seen = np.tri(side, dtype=bool)
        sinks = []
        for layer in range(of.layers):
            for head in range(of.heads):
                lse_S = of.log_sums(layer, head, rows_S)
                weights = of.weights(layer, head, rows_S, slice(0, tokens), lse_S)
                by_row = np.maximum.reduceat(weights, starts, axis=0)
                cells = np.maximum.reduceat(by_row, edges[:-1], axis=1)
                thumbs[layer, head] = as_bytes(cells, seen)
                share_N = weights.mean(0)
                key = int(share_N.argmax())
                sinks.append((key, float(share_N[key])))
        table = [sinks[at : at + of.heads] for at in range(0, len(sinks), of.heads)]
        return Grid(thumbs, table, len(rows_S))

    def _check(self, layer: int, head: int) -> None:
        of = self.of
        if not (0 <= layer < of.layers and 0 <= head < of.heads):
            raise BadInput(f"tile: the model has {of.layers} layers of {of.heads} heads, from 0")

    def _head(self, layer: int, head: int) -> _Head:
        """A head's base level; the whole of its weights goes by once, some rows at a time."""
        known = self._heads.pop((layer, head), None)
        self._heads[layer, head] = known = known or self._computed(layer, head)
        while len(self._heads) > HEADS:
            self._heads.popitem(last=False)
        return known

    def _computed(self, layer: int, head: int) -> _Head:
        of, tokens, by = self.of, self.of.tokens, 1 << self.base
        side = -(-tokens // by)
        most, mass = (np.zeros((side, side), np.float32) for _ in range(2))
        received_N, sums = np.zeros(tokens, np.float64), []
        for start in range(0, tokens, ROWS):
            rows = np.arange(start, min(start + ROWS, tokens))
            lse_R = of.log_sums(layer, head, rows)
            weights = of.weights(layer, head, rows, slice(0, int(rows[-1]) + 1), lse_R)
            sums.append(lse_R.cpu().numpy())
            received_N[: weights.shape[1]] += weights.sum(0)
            for into, how in ((most, "most"), (mass, "mass")):
                cells = pooled(weights, by, how)
                into[start // by : start // by + len(cells), : cells.shape[1]] = cells
        shares_N = (received_N / tokens).astype(np.float32)
        return _Head(np.concatenate(sums), most, mass, shares_N)

    def _cells(
        self, kept: _Head, layer: int, head: int, level: int, row: int, column: int, how: str
    ) -> np.ndarray:
        """Pooled weights of one tile."""
        if level >= self.base:
            by, wide = 1 << (level - self.base), CELLS << (level - self.base)
            table = kept.most if how == "most" else kept.mass
            part = table[row * wide : (row + 1) * wide, column * wide : (column + 1) * wide]
            return pooled(part, by, how)
        wide = CELLS << level
        rows = np.arange(row * wide, min((row + 1) * wide, self.of.tokens))
        columns = slice(column * wide, min((column + 1) * wide, self.of.tokens))
        lse_R = torch.from_numpy(kept.lse_N[rows])
        return pooled(self.of.weights(layer, head, rows, columns, lse_R), 1 << level, how)
