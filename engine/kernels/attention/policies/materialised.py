"""All weights of a head lie in memory between the products: attention as it is written down."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.attention.items import costs, key_items, query_items
from engine.kernels.attention.policy import Item, Phase, Scores, Split
from engine.kernels.attention.problem import Problem
from engine.kernels.attention.product_cpu import BLOCK

Do = Callable[[Item, int], None]


class Materialised(Scores):
    """Softmax weights [N, N] of every head are kept for backward."""

    kind: Literal["materialised"] = knob("materialised", doc="Weights of every pair in memory")

    def phases(self, problem: Problem, split: Split, workers: int) -> Iterator[Phase]:
        heads, rows, dim = _Heads(problem), query_items(problem, split), problem.dim
        pairs = sum(item.pairs for item in rows)
        weights = 4.0 * problem.heads * sum(n * n for n in problem.lengths)

        def moved(queries: int, keys: int, times: int) -> tuple[float, float]:
            least, tiled = costs(problem, pairs, queries, keys)
            return least + times * weights, tiled + times * weights

        yield Phase("forward", rows, heads.forward, 4 * dim, 5.0 * pairs, *moved(2, 2, 4))
        if problem.backward:
            keys, cost = key_items(problem, split), moved(4, 4, 3)
            yield Phase("backward keys", keys, heads.keys, 6 * dim, 3.0 * pairs, *cost, True)
            cost = moved(4, 2, 3)
            yield Phase("backward queries", rows, heads.queries, 4 * dim, 3.0 * pairs, *cost, True)


class _Heads:
    """Weights by head of each sequence, and the views of inputs and results by head."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.weights: list[list[np.ndarray]] = []

    def forward(self) -> Do:
        p = self.problem
        self.weights = [[p.ledger.take(n, n) for _ in range(p.heads)] for n in p.lengths]

        def do(item: Item, worker: int) -> None:
            for b, head, first in item.tasks.tolist():
                rows = slice(first, first + BLOCK)
                p_RN = self.weights[b][head][rows]
                np.matmul(self.of("q", b, head)[rows], self.of("k", b, head // p.share).T, p_RN)
                p_RN *= np.float32(p.switches.scale)
                if p.causal:
                    position = np.arange(first, first + len(p_RN))[:, None]
                    p_RN[np.arange(p_RN.shape[1]) > position] = -np.inf
                p_RN -= p_RN.max(1, keepdims=True)
                np.exp(p_RN, out=p_RN)
                p_RN /= p_RN.sum(1, keepdims=True)
                self.of("o", b, head)[rows] = p_RN @ self.of("v", b, head // p.share)

        return do

    def keys(self) -> Do:
        p = self.problem

        def do(item: Item, worker: int) -> None:
            for b, group, first in item.tasks.tolist():
                rows = slice(first, first + BLOCK)
                dk, dv = self.of("dk", b, group)[rows], self.of("dv", b, group)[rows]
                dk[:], dv[:] = 0, 0
                for head in range(group * p.share, (group + 1) * p.share):
                    p_NR, do_ND = self.weights[b][head][:, rows], self.of("do", b, head)
                    ds_NR = do_ND @ self.of("v", b, group)[rows].T - self.shared(b, head)
                    dv += p_NR.T @ do_ND
                    dk += p.switches.scale * ((ds_NR * p_NR).T @ self.of("q", b, head))

        return do

    def queries(self) -> Do:
        p = self.problem

        def do(item: Item, worker: int) -> None:
            for b, head, first in item.tasks.tolist():
                rows, group = slice(first, first + BLOCK), head // p.share
                ds_RN = self.of("do", b, head)[rows] @ self.of("v", b, group).T
                ds_RN -= self.shared(b, head)[rows]
                ds_RN *= self.weights[b][head][rows]
                self.of("dq", b, head)[rows] = p.switches.scale * (ds_RN @ self.of("k", b, group))

        return do

    def shared(self, b: int, head: int) -> np.ndarray:
        """delta [N, 1]: what all keys of a query share."""
        return (self.of("do", b, head) * self.of("o", b, head)).sum(1, keepdims=True)

    def of(self, name: str, b: int, head: int) -> np.ndarray:
        """[N, D] of a sequence's head."""
        p = self.problem
        first = sum(p.lengths[:b])
        array = p.results[name] if name in p.results else self.inputs[name]
        return array.reshape(p.tokens, -1, p.dim)[first : first + p.lengths[b], head]

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """By name."""
        q, k, v = (tensor.numpy() for tensor in self.problem.tensors[:3])
        return {"q": q, "k": k, "v": v, "do": self.problem.do_THD.numpy()}
