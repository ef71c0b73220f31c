"""Collaborative drafts: a virtual clock of a target and of the nodes that draft for it.

A request's next drafts are begun when its last verification is over and the nodes are free; the
target waits for what is not there yet. Each node drafts for its share of the requests.
Shape letters: D sequences that decode, K drafts of one.
"""

import numpy as np

from engine.inference.executors.costs.modelled_drafts import Drafting
from engine.inference.policies.speculation import Collaborating
from engine.inference.requests.step import Step

ROUTE = np.uint64(0xC05E)  # routes are right or wrong apart from drafts
STEPS = 16  # whose ends are remembered: more than groups of requests take turns


class CollaborativeDrafting(Drafting):
    """Drafts of nodes beside the target; `says` how."""

    says: Collaborating

    def begin(self, says: Collaborating) -> None:
        """Nothing is drafted yet."""
        self.says = says
        self.now = self.free = self.waited = 0.0  # the target's clock; when the nodes are free
        self.ended: list[tuple[np.ndarray, float]] = []  # seeds of each step's requests; its end

    def right(self, seed_D: np.ndarray) -> np.ndarray:
        """Less often where a request's specialist is not among those that draft for it."""
        zero_D = np.zeros(len(seed_D), np.int64)
        found_D = self._draws(seed_D.astype(np.uint64) ^ ROUTE, zero_D) < self.says.found
        return np.where(found_D, self.acceptance, self.says.apart)

    def beside(self, step: Step, seconds: float) -> tuple[float, tuple[float, float]]:
        """The pass is over, and with it what its requests wait for."""
        self.now += self.waited + seconds
        self.waited = 0.0
        seeds = step.rows.seed[step.rows_B].copy()
        self.ended = [*self.ended[1 - STEPS :], (seeds, self.now)]
        return seconds, (0.0, 0.0)

    def _seconds(self, step: Step, longest: int, depth_K: np.ndarray | None = None) -> float:
        """What the target waits for the drafts of this step."""
        if self.cost is None or not len(step.rows_B):
            return 0.0
        self._prompts(step)
        if step.drafts_B is None:
            return 0.0
        rows, drafts_D = step.rows, step.drafts_B[: step.decodes]
        drafting = step.rows_B[: step.decodes][drafts_D > 0]
        if not len(drafting):
            return 0.0
        since = self.now if self.says.waits else self._since(rows.seed[drafting])
        own = self._share(rows.known[drafting])
        self.free = max(self.free, since) + self._levels(own, longest, depth_K)
        self.waited = max(0.0, self.free + self.says.exchange - self.now)
        return self.waited

    def _since(self, seeds: np.ndarray) -> float:
        """When the last of these requests was verified."""
        ends = [end for those, end in self.ended if np.isin(seeds, those).any()]
        return max(ends, default=0.0)

    def _share(self, starts_D: np.ndarray) -> np.ndarray:
        """The requests of one node: each is drafted for by as many nodes as it is routed to."""
        share = len(starts_D) * self.says.routed / len(self.says.models)
        at = np.linspace(0, len(starts_D) - 1, max(1, int(np.ceil(share)))).astype(np.int64)
        return np.sort(starts_D)[at]

    def _levels(self, starts: np.ndarray, longest: int, depth_K: np.ndarray | None) -> float:
        """A pass for each level of the tree, after each of which nodes that draft together tell
        each other."""
        cost, seconds = self.cost, 0.0
        assert cost is not None
        told = self.says.exchange if self.says.routed > 1 else 0.0
        for ahead in range(longest):
            wide = 1 if depth_K is None or not ahead else int((depth_K == ahead - 1).sum())
            new = np.repeat(starts + ahead, wide)
            seconds += cost.total(cost.decode_shape(new, len(new)))[0] + self.per_pass + told
        return seconds

    def _prompts(self, step: Step) -> None:
        """Nodes compute the prompts of their requests too, beside the target."""
        count = step.decodes
        if count == len(step.rows_B) or self.cost is None:
            return
        new_B, starts_B = step.queries_B[count:], step.starts_B[count:]
        share = self.says.routed / len(self.says.models)
        seconds = self.cost.total(self.cost.shape(new_B, starts_B + new_B, 0))[0]
        self.free = max(self.free, self.now) + share * seconds + self.per_pass
