"""Mirrored drafts: a virtual clock of two devices, one that verifies and one that drafts beside it.

At the target's early exit the drafting device begins to draft on from the candidates of every place
that a row may end up at. A row whose next token was not among them waits for drafts in turn.
Shape letters: D sequences that decode.
"""

import numpy as np

from engine.inference.executors.costs.collaborative_drafts import CollaborativeDrafting
from engine.inference.executors.costs.modelled_drafts import Drafting
from engine.inference.executors.costs.ranked_step_cost import Cost
from engine.inference.policies.speculation import Mirrored, Speculation
from engine.inference.requests.step import Step

APART = np.uint64(0x5EED)  # early exits are right or wrong apart from drafts


class MirroredDrafting(Drafting):
    """Drafts of a device beside the target's; `says` how."""

    says: Mirrored

    def hits(self, seed_S: np.ndarray, known_S: np.ndarray) -> np.ndarray:
        """Whether the token after `known_S` tokens is among the early exit's candidates."""
        says = self.says
        rate = says.candidates / self.vocab if says.random else says.hit
        return self._draws(seed_S.astype(np.uint64) ^ APART, known_S) < rate

    def beside(self, step: Step, seconds: float) -> tuple[float, tuple[float, float]]:
        """The branches for the next step are drafted from the target's early exit on."""
        says, decode, count = self.says, step.rows_B[: step.decodes], step.decodes
        if self.cost is None or step.drafts_B is None:
            return seconds, (0.0, 0.0)
        if count < len(step.rows_B):  # prompts are computed by both
            new_B, starts_B = step.queries_B[count:], step.starts_B[count:]
            shape = self.cost.shape(new_B, starts_B + new_B, 0)
            prompts = self.cost.total(shape)[0] + self.per_pass
            seconds = seconds + prompts if says.waits else max(seconds, prompts)
        if not step.drafted or says.waits:
            return seconds, (0.0, 0.0)
        ends_D = step.drafts_B[: step.decodes] + 1  # places a row may end up at
        starts = np.repeat(step.rows.known[decode], ends_D * says.candidates)
        each = self.cost.total(self.cost.decode_shape(starts, len(starts)))[0] + self.per_pass
        branches = says.exchange + self._passes(int(step.drafts_B.max())) * each
        begin = says.exit * seconds
        return max(seconds, begin + branches), (begin, begin + branches)

    def _passes(self, longest: int) -> int:
        return -(-longest // self.says.streamed)

    def _seconds(self, step: Step, longest: int, depth_K: np.ndarray | None = None) -> float:
        """The other device's time before the pass: for rows whose next token was not foreseen."""
        cost, says = self.cost, self.says
        if cost is None or not len(step.rows_B):
            return 0.0
        rows, count = step.rows, step.decodes
        drafts_B = np.zeros_like(step.queries_B) if step.drafts_B is None else step.drafts_B
        decode = step.rows_B[:count]
        first_D = rows.known[decode] - rows.prompt[decode] <= 1  # nothing was drafted beside these
        waits_D = first_D | ~self.hits(rows.seed[decode], rows.known[decode] - 1)
        if says.waits:
            waits_D = np.ones(count, np.bool_)
        waits_D &= drafts_B[:count] > 0
        if not waits_D.any():
            return 0.0
        starts = rows.known[decode[waits_D]]
        each = cost.total(cost.decode_shape(starts, len(starts)))[0] + self.per_pass
        return says.exchange + self._passes(int(drafts_B[:count][waits_D].max())) * each


def drafting_of(said: Speculation, vocab: int, cost: Cost | None, per_pass: float) -> Drafting:
    """The drafts that a policy asks for, by a model whose passes `cost` so much."""
    told = said.rightness, vocab, cost, per_pass, said.width, said.second
    if said.collaborates is not None:
        together = CollaborativeDrafting(*told)
        together.begin(said.collaborates)
        return together
    if said.mirrors is None:
        return Drafting(*told)
    mirrored = MirroredDrafting(*told)
    mirrored.says = said.mirrors
    return mirrored
