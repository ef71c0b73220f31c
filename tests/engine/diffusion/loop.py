"""Masked-diffusion decoding in a loop of its own: what the serving engine's must equal.

Shape letters: N texts, L positions of an answer, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.diffusion.distance import LEAST, one_by_one
from engine.diffusion.joints import Joint
from engine.diffusion.model import Predictor
from engine.inference.policies.unmasking import Unmasking


@dataclass(frozen=True)
class Decided:
    """One step of N texts: positions decided, all positions' scores, and the texts after it."""

    chosen_NL: np.ndarray
    scores_NL: np.ndarray
    texts_NL: np.ndarray
    revealed_NL: np.ndarray  # where they stand
    logprobs_NL: np.ndarray  # of what stands there now, where it was decided in this step


def decode(
    predict: Predictor, unmasking: Unmasking, joint: Joint, count: int, seed: int,
    peeks: bool = False,
) -> Iterator[Decided]:  # fmt: skip
    """Draw `count` answers, step by step, until nothing is masked in any of them."""
    chance = np.random.default_rng(seed)
    texts_NL = np.zeros((count, joint.answers_SL.shape[1]), np.int64)
    revealed_NL = np.zeros(texts_NL.shape, np.bool_)
    while not revealed_NL.all():
        p_NLV = predict(joint, texts_NL, revealed_NL)
        scores_NL = unmasking.scores(p_NLV, seed)
        chosen_NL = unmasking.choose(scores_NL, ~revealed_NL)
        logprobs_NL = np.zeros(texts_NL.shape)
        for part_NL in one_by_one(chosen_NL) if peeks else (chosen_NL,):
            if peeks:
                p_NLV = predict(joint, texts_NL, revealed_NL)
            drawn_NL = _drawn(p_NLV, chance)
            texts_NL = np.where(part_NL, drawn_NL, texts_NL)
            own_NL = np.take_along_axis(p_NLV, texts_NL[..., None], 2)[..., 0]
            logprobs_NL = np.where(part_NL, np.log(np.maximum(own_NL, LEAST)), logprobs_NL)
            revealed_NL = revealed_NL | part_NL
        yield Decided(chosen_NL, scores_NL, texts_NL, revealed_NL, logprobs_NL)


def _drawn(p_NLV: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """A token of each position. Where nothing may stand, whatever comes first."""
    passed_NLV = np.cumsum(p_NLV, axis=-1)
    wanted_NL = chance.random(p_NLV.shape[:2]) * passed_NLV[..., -1]
    return (passed_NLV > wanted_NL[..., None]).argmax(-1)
