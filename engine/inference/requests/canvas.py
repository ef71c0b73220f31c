"""Canvas: the block of an answer's tokens that a masked-diffusion request fills in, in any order.

It lies behind the prompt, masks at first. Each step says what may stand at every place of it; a
policy picks places, and all of those are drawn at once, each by itself (LLaDA, arXiv 2502.09992).

Shape letters: L places of the block, V vocabulary.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

LEAST = 1e-300  # a probability's logarithm is that of this at least
NOWHERE = np.zeros(0, np.bool_)


class Picks(Protocol):
    """Which places a step decides; engine.inference.policies.unmasking has them. N texts.

    `counted`: as many, whatever the model says.
    """

    @property
    def counted(self) -> bool: ...

    def scores(self, p_NLV: np.ndarray, seed: int) -> np.ndarray:
        """[N, L], larger for what is decided sooner."""
        ...

    def choose(self, scores_NL: np.ndarray, masked_NL: np.ndarray) -> np.ndarray:
        """Which of the masked places are decided now, bool [N, L]: at least one of each text that
        has any."""
        ...


class Decided(NamedTuple):
    """What a step decided: where, what, and how likely each was."""

    chosen_L: np.ndarray  # bool
    tokens_L: np.ndarray  # int64; nonsense where nothing was decided now
    logprobs_L: np.ndarray  # of the model, before any temperature
    scores_L: np.ndarray  # by which the policy picked


@dataclass(slots=True, eq=False)
class Canvas:
    """One request's block. What is decided stays, whatever becomes of the request's pages: the
    tokens are its own, and draws go on where they stopped.

    `peeks`, a mistake: tokens of one pick see those drawn before them in it.
    """

    mask: int  # the token that stands where none is decided
    unmasking: Picks
    peeks: bool = False
    revealed_L: np.ndarray = field(default_factory=lambda: NOWHERE)
    logprobs_L: np.ndarray = field(default_factory=lambda: np.zeros(0))
    steps: int = 0
    told: int = 0  # leading places whose tokens have been heard in order
    chance: np.random.Generator | None = None
    picked_L: np.ndarray = field(default_factory=lambda: NOWHERE)  # and not drawn yet

    def begin(self, length: int) -> None:
        """A block of `length` masks."""
        self.revealed_L = np.zeros(length, np.bool_)
        self.picked_L = self.revealed_L.copy()
        self.logprobs_L = np.zeros(length)

    def decide(self, p_LV: np.ndarray, seed: int, temperature: float = 1.0) -> Decided:
        """Decide some places by what may stand at each (float64). Draws depend on `seed` and the
        steps before alone; temperature 0 takes the likeliest token."""
        if self.chance is None:
            self.chance = np.random.default_rng(seed)
        scores_1L = self.unmasking.scores(p_LV[None], seed)
        if not self.picked_L.any():
            self.picked_L = self.unmasking.choose(scores_1L, ~self.revealed_L[None])[0]
        chosen_L = self.picked_L
        if self.peeks:
            chosen_L = chosen_L & (np.cumsum(chosen_L) == 1)
        tokens_L = drawn(p_LV, self.chance, temperature)
        own_L = np.take_along_axis(p_LV, tokens_L[:, None], 1)[:, 0]
        logprobs_L = np.log(np.maximum(own_L, LEAST))
        self.picked_L = self.picked_L & ~chosen_L
        self.revealed_L = self.revealed_L | chosen_L
        self.logprobs_L = np.where(chosen_L, logprobs_L, self.logprobs_L)
        self.steps += 1
        return Decided(chosen_L, tokens_L, logprobs_L, scores_1L[0])

    @property
    def frontier(self) -> int:
        """Leading places that are all decided."""
        return int(np.append(self.revealed_L, False).argmin())


def drawn(p_LV: np.ndarray, chance: np.random.Generator, temperature: float = 1.0) -> np.ndarray:
    """A token of each place. Where nothing may stand, whatever comes first."""
    wanted_L = chance.random(p_LV.shape[:-1])
    if temperature == 0.0:
        return p_LV.argmax(-1)
    if temperature != 1.0:
        p_LV = (p_LV / np.maximum(p_LV.max(-1, keepdims=True), LEAST)) ** (1.0 / temperature)
    passed_LV = np.cumsum(p_LV, axis=-1)
    return (passed_LV > (wanted_L * passed_LV[..., -1])[..., None]).argmax(-1)
