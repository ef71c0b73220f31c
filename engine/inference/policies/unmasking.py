"""Unmasking policies: which masked positions of a text a step decides, all at once.

A policy ranks positions by what the model says of them and takes a number of them (LLaDA,
arXiv 2502.09992; margins: arXiv 2502.06768; entropy: Dream, arXiv 2508.15487) or as many as it is
sure enough of (threshold and factor: Fast-dLLM, arXiv 2505.22618; a bound of entropy: EB-Sampler,
arXiv 2505.24857). The choice depends on the text
alone, never on what is then drawn, so that the probability of an answer is a product.

Shape letters: N texts, L positions, V vocabulary.
"""

from abc import abstractmethod
from typing import Literal

import numpy as np

from engine.core.config import Policy, knob


class Unmasking(Policy):
    """Which positions a step decides."""

    folder = "engine.inference.policies.unmasking"

    @property
    def counted(self) -> bool:
        """Whether it decides a number of tokens, whatever the model says."""
        return False

    def scores(self, p_NLV: np.ndarray, seed: int) -> np.ndarray:
        """[N, L], larger for what is decided sooner: the probability of the likeliest token."""
        return p_NLV.max(-1)

    @abstractmethod
    def takes(self, scores_NK: np.ndarray) -> np.ndarray:
        """How many of the masked positions each text decides, at least 1, from their scores, the
        largest first and -inf beyond those masked."""

    def choose(self, scores_NL: np.ndarray, masked_NL: np.ndarray) -> np.ndarray:
        """Which positions of each text are decided now, bool [N, L]; of equals the first."""
        scores_NL = np.where(masked_NL, scores_NL, -np.inf)
        order_NL = np.argsort(-scores_NL, axis=1, kind="stable")
        count_N = self.takes(np.take_along_axis(scores_NL, order_NL, 1))
        taken_NL = np.zeros_like(masked_NL)
        place_L = np.arange(masked_NL.shape[1])
        np.put_along_axis(taken_NL, order_NL, place_L < count_N[:, None], 1)
        return taken_NL & masked_NL


class Fixed(Unmasking):
    """As many tokens a step, whatever the model says."""

    tokens: int = knob(1, "Tokens decided in a step", low=1, high=64, unit="tokens")

    @property
    def counted(self) -> bool:
        return True

    def takes(self, scores_NK: np.ndarray) -> np.ndarray:
        return np.full(len(scores_NK), self.tokens)


class RandomOrder(Fixed):
    """An order drawn once, the same for every text."""

    kind: Literal["random"] = "random"

    def scores(self, p_NLV: np.ndarray, seed: int) -> np.ndarray:
        order_L = np.random.default_rng(seed).random(p_NLV.shape[1])
        return np.tile(order_L, (len(p_NLV), 1))


class Confidence(Fixed):
    """Where the likeliest token is likeliest."""

    kind: Literal["confidence"] = "confidence"


class Margin(Fixed):
    """Where the likeliest token is furthest ahead of the second."""

    kind: Literal["margin"] = "margin"

    def scores(self, p_NLV: np.ndarray, seed: int) -> np.ndarray:
        two_NL2 = np.sort(p_NLV, axis=-1)[..., -2:]
        return two_NL2[..., 1] - two_NL2[..., 0]


class Entropy(Fixed):
    """Where the distribution has the least entropy."""

    kind: Literal["entropy"] = "entropy"

    def scores(self, p_NLV: np.ndarray, seed: int) -> np.ndarray:
        return _less_entropy(p_NLV)


def _less_entropy(p_NLV: np.ndarray) -> np.ndarray:
    """[N, L], nats below nought."""
    return (p_NLV * np.log(np.maximum(p_NLV, 1e-30))).sum(-1)


class Threshold(Unmasking):
    """All whose likeliest token is likely enough, the likeliest where none is."""

    kind: Literal["threshold"] = "threshold"
    least: float = knob(0.9, "Probability of its likeliest token from which one is decided",
                        low=0.0, high=1.0)  # fmt: skip

    def takes(self, scores_NK: np.ndarray) -> np.ndarray:
        return np.maximum(1, (scores_NK >= self.least).sum(1))


class Factor(Unmasking):
    """The k likeliest for the largest k with (k + 1)(1 - p of the k-th) below a bound."""

    kind: Literal["factor"] = "factor"
    factor: float = knob(0.5, "Bound of (k + 1)(1 - p)", low=0.0, high=8.0)

    def takes(self, scores_NK: np.ndarray) -> np.ndarray:
        k_K = np.arange(1, scores_NK.shape[1] + 1)
        holds_NK = (k_K + 1) * (1.0 - scores_NK) < self.factor
        return np.maximum(1, np.where(holds_NK, k_K, 0).max(1))


class EntropyBound(Unmasking):
    """Those of least entropy, the last left out of the sum, up to a bound: by so much at most can
    tokens of a step hang together, if the model is right of each."""

    kind: Literal["entropy_bound"] = "entropy_bound"
    nats: float = knob(0.5, "Bound of what a step's tokens may hang together", low=0.0, high=64.0,
                       unit="nats")  # fmt: skip

    def scores(self, p_NLV: np.ndarray, seed: int) -> np.ndarray:
        return _less_entropy(p_NLV)

    def takes(self, scores_NK: np.ndarray) -> np.ndarray:
        summed_NK = np.cumsum(-scores_NK[:, :-1], axis=1)
        return 1 + (summed_NK <= self.nats).sum(1)
