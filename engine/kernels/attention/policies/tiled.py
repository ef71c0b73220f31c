"""Scores live in a tile and are gone: online softmax, and recomputation in backward."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.attention import backward_cpu, forward_cpu, work
from engine.kernels.attention.arguments import KEYS, Shape
from engine.kernels.attention.items import costs, key_items, query_items
from engine.kernels.attention.policy import Item, Phase, Scores, Split
from engine.kernels.attention.problem import Problem
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.claims import STRIDE
from engine.kernels.lanes import LOG2_E

Do = Callable[[Item, int], None]


class Tiled(Scores):
    """Tiles of 64 queries by `keys` keys; results fade when a larger score turns up."""

    kind: Literal["tiled"] = knob("tiled", doc="Scores stay in a tile")
    keys: int = knob(KEYS, "Keys in a tile, forward", low=1, high=512, log=True)
    rescale: bool = knob(True, "Let earlier results fade when the maximum rises (off: wrong)")
    kept: bool = knob(
        False, "Room for every tile's scores is held to the end, as if it were needed", group="more"
    )

    def phases(self, problem: Problem, split: Split, workers: int) -> Iterator[Phase]:
        memory = _Memory(problem, self._shape(problem), workers, self.kept)
        rows = query_items(problem, split)
        dim, pairs = problem.dim, sum(item.pairs for item in rows)
        tiles = -(-pairs // (problem.heads * BLOCK * self.keys))
        other = work.non_matmul_flops(pairs // problem.heads, tiles, problem.heads, BLOCK, dim)
        yield Phase("forward", rows, memory.forward, 4 * dim, other, *costs(problem, pairs, 2, 2))
        if problem.backward:
            keys = key_items(problem, split)
            moved = costs(problem, pairs, 4, 4)
            yield Phase("backward keys", keys, memory.keys, 8 * dim, 3.0 * pairs, *moved, True)
            moved = costs(problem, pairs, 4, 2)
            yield Phase(
                "backward queries", rows, memory.queries, 6 * dim, 3.0 * pairs, *moved, True
            )

    def _shape(self, problem: Problem) -> Shape:
        scale, D = np.float32(problem.switches.scale * LOG2_E), problem.dim
        return Shape(
            problem.heads, problem.kv_heads, D, D, scale, np.float32(0), problem.causal, 0,
            self.keys, self.rescale,
        )  # fmt: skip


class _Memory:
    """What the kernels of one problem hold beside inputs and results, taken as they are opened."""

    def __init__(self, problem: Problem, shape: Shape, workers: int, kept: bool) -> None:
        self.problem, self.shape, self.workers, self.kept = problem, shape, workers, kept
        self.scratch = np.zeros(0, np.float32)
        self.lse = self.scratch  # [T, H]

    def forward(self) -> Do:
        p = self.problem
        self.lse = p.ledger.take(p.tokens * p.heads)
        if self.kept:
            self.scores = p.ledger.take(p.heads * sum(n * n for n in p.lengths))
        room = forward_cpu.room(p.dim, p.dim, self.shape.keys)
        return self._do(forward_cpu.forward, (p.results["o"], self.lse), room)

    def keys(self) -> Do:
        p = self.problem
        self.read = (p.do_THD.numpy().reshape(-1), *self._saved())
        return self._do(backward_cpu.backward_keys, self._results(), self._room())

    def queries(self) -> Do:
        return self._do(backward_cpu.backward_queries, self._results(), self._room())

    def _room(self) -> int:
        return backward_cpu.room(self.problem.dim, self.problem.dim)

    def _results(self) -> tuple[np.ndarray, ...]:
        return (*self.read, *(self.problem.results[name] for name in ("dq", "dk", "dv")))

    def _saved(self) -> tuple[np.ndarray, np.ndarray]:
        """lse in log 2, and delta, by head."""
        p = self.problem
        lse, delta = (p.ledger.take(p.heads, p.tokens) for _ in range(2))
        np.multiply(self.lse.reshape(p.tokens, p.heads).T, np.float32(LOG2_E), out=lse)
        o_THD = p.results["o"].reshape(p.tokens, p.heads, p.dim)
        np.einsum("thd,thd->ht", p.do_THD.numpy(), o_THD, out=delta)
        return lse.reshape(-1), delta.reshape(-1)

    def _do(self, body: Any, results: tuple[np.ndarray, ...], room: int) -> Do:
        """What does an item with `body`, each worker in scratch of its own."""
        p, shape = self.problem, self.shape
        p.ledger.give_back(self.scratch)
        scratch = self.scratch = p.ledger.take(self.workers * room)

        def do(item: Item, worker: int) -> None:
            counters = np.zeros(STRIDE, np.int64)
            body(item.tasks, p.given, shape, results, scratch, worker * room, counters)

        do(
            Item("none", np.zeros((0, 3), np.int64), 0), 0
        )  # compiled before anyone looks at a clock
        return do
