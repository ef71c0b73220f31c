"""Collaborating drafters: several small models that grow one tree of drafts for each request.

Every model keeps up with every request, over pages of its own under the same block table. Each
request is routed to those whose likeliest first token was most often what the target then said.

Shape letters: M models, B sequences of the step, R rows of logits, V vocabulary.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.inference.executors.tensors.drafter import Drafter
from engine.inference.executors.tensors.gather import pack_rows
from engine.inference.executors.tensors.sampler import Drawn
from engine.inference.policies.speculation import Collaborating
from engine.inference.requests.step import Step
from engine.models.batch import Batch

MEMORY = 0.8  # of how well a model drafted before, kept with each step


class Expertise:
    """How well each of `count` models drafted for a request of late, and what they last said."""

    def __init__(self, count: int) -> None:
        self.right_M = np.ones(count)  # untried ones are tried
        self.place, self.said_M = -1, np.zeros(count, np.int64)  # likeliest tokens for that place

    def judge(self, tokens: np.ndarray, known: int) -> None:
        """Learn from what was said at the place that was foretold."""
        if 0 <= self.place < known:
            hit_M = self.said_M == tokens[self.place]
            self.right_M = MEMORY * self.right_M + (1 - MEMORY) * hit_M
        self.place = -1


class CollaboratingDrafters(Drafter):
    """Drafters that route, fuse and draft in levels together."""

    def __init__(self, drafters: Sequence[Drafter], how: Collaborating) -> None:
        first = drafters[0]
        super().__init__(first.model, first.storage, first.sampler, first.width)
        self.drafters, self.how = drafters, how
        self.expertise: dict[str, Expertise] = {}  # by request
        self.rows_of: list[str] = []  # requests by row
        self.level = 0

    def draft(self, step: Step) -> Drawn:
        """Write the step's drafts into their rows; they are no draws but the likeliest."""
        for drafter in self.drafters:
            drafter.move(step)
        self.flops = self.bytes = 0.0
        if not len(step.rows_B):
            return Drawn()
        rows, self.level = step.rows, 0
        self.rows_of = [request.id for request in step.requests[: rows.count]]
        drafts_B = np.zeros_like(step.queries_B) if step.drafts_B is None else step.drafts_B
        batch = pack_rows(rows, step.rows_B, step.starts_B, step.queries_B - drafts_B)
        asks_S = np.flatnonzero(drafts_B)
        batch.logits_at_R = batch.query_start_B1[asks_S + 1] - 1
        own = {name: self.expertise.get(name) for name in self.rows_of}  # the others are over
        self.expertise = {
            name: found or Expertise(len(self.drafters)) for name, found in own.items()
        }
        for row in step.rows_B[asks_S].tolist():
            known = int(rows.known[row])
            expertise = self.expertise[self.rows_of[row]]
            expertise.judge(rows.tokens[row], known)
            expertise.place = known
        parents_N = step.parents_N
        if parents_N is None:
            ends = np.append(0, np.cumsum(drafts_B))
            chains = [np.arange(b - a, dtype=np.int32) - 1 for a, b in pairwise(ends)]
            parents_N = np.concatenate(chains).astype(np.int32)
        self.trees(step, batch, asks_S, drafts_B, parents_N)  # which are the step's own
        return Drawn()

    def realign(self, tables_DP: np.ndarray, starts_D: np.ndarray, off: int) -> None:
        for drafter in self.drafters:
            drafter.realign(tables_DP, starts_D, off)

    def logits(self, batch: Batch, rows_R: np.ndarray) -> np.ndarray:
        """Log-probabilities of each token by the surest of the models a request is routed to."""
        sure_MRV = np.stack([_sure(one.logits(batch, rows_R)) for one in self.drafters])
        self.flops = sum(one.flops for one in self.drafters)
        self.bytes = sum(one.bytes for one in self.drafters)
        names = [self.rows_of[row] for row in rows_R.tolist()]
        if not self.level:
            for r, name in enumerate(names):
                self.expertise[name].said_M = sure_MRV[:, r].argmax(-1)
        self.level += 1
        fused_RV = np.empty_like(sure_MRV[0])
        for r, name in enumerate(names):
            fused_RV[r] = sure_MRV[self.route(name), r].max(0)
        return fused_RV

    def route(self, name: str) -> np.ndarray:
        """The models that draft for a request: those that did best, the first among equals."""
        right_M = self.expertise[name].right_M
        order = np.argsort(right_M if self.how.wrongly else -right_M, kind="stable")
        return np.asarray(order[: self.how.routed])


def _sure(logits_RV: np.ndarray) -> np.ndarray:
    """Log-probabilities."""
    best_R1 = logits_RV.max(-1, keepdims=True)
    apart_RV = logits_RV - best_R1
    return np.asarray(apart_RV - np.log(np.exp(apart_RV).sum(-1, keepdims=True)))
