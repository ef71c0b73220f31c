"""Sampler: draws tokens from logits, after penalties and biases, all rows together.

Shape letters: R rows of logits, S samples, X samples that want more than the likeliest token, V
vocabulary.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.inference.executors.tensors import rejection
from engine.inference.requests.request import Sampling
from engine.inference.requests.step import Step
from engine.kernels import sample
from engine.kernels.sample import Wishes, reference

Tops = dict[int, list[tuple[int, float]]]
Drawn = dict[tuple[int, int], np.ndarray]  # (row, drafts before it) -> what a draft was drawn from


class Sampler:
    """Takes tokens from the logits of a step, with compiled kernels or in plain numpy.

    Both take the same tokens, with log-probabilities equal within float32 rounding. `compiled`
    waits here, not in a step, for kernels that are not compiled. `eos` ends an answer. Drafts of
    requests that sample are verified by rejection sampling where it `rejects`, by drawing again
    from the whole distribution where it forgets the `residual`.
    """

    def __init__(
        self,
        compiled: bool,
        eos: tuple[int, ...] = (),
        rejects: bool = False,
        residual: bool = True,
    ) -> None:
        self.eos, self.rejects, self.residual = eos, rejects, residual
        self.greedy: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] = reference.greedy
        self.draw: Callable[[np.ndarray, Wishes], np.ndarray] = reference.sample
        if compiled:
            sample.prepare()
            self.greedy, self.draw = sample.greedy, sample.sample

    def __call__(
        self, logits_RV: np.ndarray, from_S: np.ndarray, step: Step, drawn: Drawn | None = None
    ) -> tuple[np.ndarray, np.ndarray, Tops]:
        """Tokens, their log-probabilities under the model itself, and the likeliest if asked for.

        `from_S[s]` is the row of logits that sample s is drawn from; `drawn` what the step's drafts
        were drawn from, where a model drew them.
        """
        best_R, logprob_R = self.greedy(logits_RV)
        tokens_S, logprobs_S, tops = best_R[from_S], logprob_R[from_S], Tops()
        special_X = np.flatnonzero(~step.rows.plain[step.sample_rows_S])
        if len(special_X):
            from_X, rows_X = from_S[special_X], step.sample_rows_S[special_X]
            scores_XV, wishes = self._wanted(logits_RV[from_X], special_X, step)
            tokens_X = self.draw(scores_XV, wishes)
            if self.rejects and step.drafts_B is not None:
                self._verify(scores_XV, wishes, special_X, step, drawn or {}, tokens_X)
            tokens_S[special_X] = tokens_X
            logprobs_S[special_X] += logits_RV[from_X, tokens_X] - logits_RV[from_X, best_R[from_X]]
            for s, r, row in zip(special_X.tolist(), from_X.tolist(), rows_X.tolist(), strict=True):
                count = step.requests[row].sampling.logprobs
                if count:
                    tops[s] = top(logits_RV[r], float(logprob_R[r]), count)
        return tokens_S, logprobs_S, tops

    def on_device(self, logits_RV: Tensor, from_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Likeliest tokens and their log-probabilities, found where the logits lie."""
        best_R1 = logits_RV.argmax(-1, keepdim=True)  # the first of equals, as on the processor
        logprob_R = logits_RV.gather(-1, best_R1)[:, 0] - logits_RV.logsumexp(-1)
        found_2R = torch.stack([best_R1[:, 0].double(), logprob_R.double()]).cpu().numpy()
        return found_2R[0].astype(np.int32)[from_S], found_2R[1].astype(np.float32)[from_S]

    def draft(
        self, logits_RV: np.ndarray, from_S: np.ndarray, step: Step, drawn: Drawn
    ) -> np.ndarray:
        """Drafts of a drafting model, from its own logits.

        Where drafts are verified by equal draws, with the very draws of the target; else with draws
        of their own, noting in `drawn` what from.
        """
        best_R, _ = self.greedy(logits_RV)
        tokens_S = best_R[from_S]
        special_X = np.flatnonzero(~step.rows.plain[step.sample_rows_S])
        if not len(special_X):
            return tokens_S
        scores_XV, wishes = self._wanted(logits_RV[from_S[special_X]], special_X, step)
        if not self.rejects:
            tokens_S[special_X] = self.draw(scores_XV, wishes)
            return tokens_S
        for s, scores_V, wish in zip(special_X.tolist(), scores_XV, _each(wishes), strict=True):
            (heat, *_), seed, position = wish
            if not heat:
                tokens_S[s] = scores_V.argmax()
                continue
            q_V = rejection.distribution(scores_V, wish[0])
            tokens_S[s] = rejection.draft(q_V, seed, position)
            row, ahead_S = int(step.sample_rows_S[s]), step.ahead_S
            drawn[row, 0 if ahead_S is None else int(ahead_S[s])] = q_V
        return tokens_S

    def onward(self, step: Step, rows_S: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """How each row's drafts are drawn from bare logits: temperature, top-k, top-p, min-p, seed.

        None where a row's logits are changed first, or where it matters what drafts are drawn from.
        """
        rows = step.rows
        heat_S, count = np.zeros(len(rows_S)), len(rows_S)
        top_k_S, top_p_S, min_p_S = np.zeros(count, np.int64), np.ones(count), np.zeros(count)
        seed_S = np.zeros(count, np.int64)
        for s in np.flatnonzero(~rows.plain[rows_S]).tolist():
            row, request = rows_S[s], step.requests[rows_S[s]]
            wish = request.sampling
            if not wish.bare or rows.known[row] < rows.floor[row] or request.guide is not None:
                return None
            if wish.temperature and self.rejects:
                return None
            heat_S[s], top_k_S[s], seed_S[s] = wish.temperature, wish.top_k, request.seed
            top_p_S[s], min_p_S[s] = wish.top_p, wish.min_p
        return heat_S, top_k_S, top_p_S, min_p_S, seed_S

    def _verify(
        self, scores_XV: np.ndarray, wishes: Wishes, special_X: np.ndarray, step: Step,
        drawn: Drawn, tokens_X: np.ndarray,
    ) -> None:  # fmt: skip
        """Put in place of `tokens_X` what rejection sampling makes of drafts that were sampled."""
        assert step.drafts_B is not None and step.ahead_S is not None
        for x, (s, wish) in enumerate(zip(special_X.tolist(), _each(wishes), strict=True)):
            cuts, seed, position = wish
            drafts = step.after(s) if cuts[0] else []
            if not drafts:
                continue
            row, ahead = int(step.sample_rows_S[s]), int(step.ahead_S[s])
            p_V = rejection.distribution(scores_XV[x], cuts)
            q_V = drawn.get((row, ahead))
            tokens_X[x] = rejection.verify(p_V, q_V, drafts, seed, position, self.residual)

    def _wanted(
        self, scores_XV: np.ndarray, special_X: np.ndarray, step: Step
    ) -> tuple[np.ndarray, Wishes]:
        """The samples' logits, adjusted in place, and how each is drawn."""
        columns = []
        rows_X, known_X = step.sample_rows_S[special_X], step.known_S[special_X]
        samples = zip(special_X.tolist(), rows_X.tolist(), known_X.tolist(), strict=True)
        for scores_V, (s, row, known) in zip(scores_XV, samples, strict=True):
            request = step.requests[row]
            wish, seen = request.sampling, step.before(s)
            adjust(scores_V, wish, seen, int(step.rows.prompt[row]), self.eos)
            if request.guide is not None:
                request.guide.forbid(scores_V)
            cuts = wish.temperature, wish.top_k, wish.top_p, wish.min_p
            columns.append((*cuts, request.seed, known))
        return scores_XV, Wishes(*[np.array(column) for column in zip(*columns, strict=True)])


def _each(wishes: Wishes) -> list[tuple[rejection.Cuts, int, int]]:
    """Cuts, seed and position of each sample."""
    columns = zip(*(column.tolist() for column in wishes), strict=True)
    return [((t, k, p, m), seed, position) for t, k, p, m, seed, position in columns]


def adjust(
    scores_V: np.ndarray, wish: Sampling, seen: np.ndarray, prompt: int, eos: tuple[int, ...]
) -> None:
    """Put penalties and biases on logits, in place, and forbid ends before `min_tokens`.

    The next token comes after `seen`, whose first `prompt` tokens are the prompt. Repetition
    (Keskar et al., arXiv 1909.05858) covers the prompt; presence and frequency the answer alone.
    """
    if wish.repetition_penalty != 1:
        old = np.unique(seen)
        value = scores_V[old]
        penalty = wish.repetition_penalty
        scores_V[old] = np.where(value > 0, value / penalty, value * penalty)
    if wish.presence_penalty or wish.frequency_penalty:
        used, counts = np.unique(seen[prompt:], return_counts=True)
        scores_V[used] -= wish.presence_penalty + wish.frequency_penalty * counts
    if wish.logit_bias:
        tokens, biases = wish.biases
        known = tokens < len(scores_V)
        np.add.at(scores_V, tokens[known], biases[known])
    if len(seen) - prompt < wish.min_tokens:
        ends = (*(() if wish.ignore_eos else eos), *wish.stop_tokens)
        scores_V[[t for t in ends if t < len(scores_V)]] = -np.inf


def top(logits_V: np.ndarray, best: float, count: int) -> list[tuple[int, float]]:
    """The `count` likeliest tokens, likeliest first, the lower number among equals.

    `best` is the log-probability of the first. A row of NaN has none.
    """
    least = np.partition(logits_V, -min(count, len(logits_V)))[-min(count, len(logits_V))]
    kept = np.flatnonzero(logits_V >= least)
    order = kept[np.argsort(-logits_V[kept], kind="stable")][:count]
    return [(int(t), float(logits_V[t] - logits_V[order[0]]) + best) for t in order]
