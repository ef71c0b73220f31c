"""How far masked-diffusion decoding must end from the joint, and does: both exact.

Every step the model says what may stand at each masked position, a policy picks positions, and all
of those are drawn at once, each by itself. As a policy's choice depends on the text alone, the
probability of an answer is the product of what was drawn along its own path: the error, the
Kullback-Leibler divergence from joint to decoder, and its lower bound, the sum of the steps'
conditional total correlations (ParallelBench, arXiv 2510.04767), are counted here over the paths of
all answers at once. Answers are drawn by the serving engine, one path each.

Shape letters: S answers of a prompt, L positions of an answer, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.diffusion.joints import Joint
from engine.diffusion.model import Predictor
from engine.inference.policies.unmasking import Unmasking

LEAST = 1e-300  # a probability's logarithm is that of this at least


@dataclass(frozen=True)
class Distance:
    """What a policy's answers to one prompt are, in nats and shares, all exact."""

    error: float  # KL divergence from the joint to the decoder
    bound: float  # which it is never below
    valid: float  # probability of an answer that may be given
    steps: float  # of the model, a text


def distance(
    predict: Predictor, unmasking: Unmasking, joint: Joint, seed: int = 0, peeks: bool = False
) -> Distance:
    """Follow every answer that may be given along the policy's steps.

    `peeks`, a mistake: tokens of one step see those drawn before them in it.
    """
    answers = joint.answers_SL
    revealed_SL = np.zeros(answers.shape, np.bool_)
    logq_S, bound_S, steps_S = (np.zeros(len(answers)) for _ in range(3))
    while not revealed_SL.all():
        p_SLV = predict(joint, answers, revealed_SL)
        scores_SL = unmasking.scores(p_SLV, seed)
        chosen_SL = unmasking.choose(scores_SL, ~revealed_SL)
        bound_S += joint.dependence(revealed_SL, chosen_SL)
        steps_S += chosen_SL.any(1)
        for part_SL in one_by_one(chosen_SL) if peeks else (chosen_SL,):
            if peeks:
                p_SLV = predict(joint, answers, revealed_SL)
            own_SL = np.take_along_axis(p_SLV, answers[..., None], 2)[..., 0]
            logq_S += np.where(part_SL, np.log(np.maximum(own_SL, LEAST)), 0.0).sum(1)
            revealed_SL = revealed_SL | part_SL
    error = float((-np.log(len(answers)) - logq_S).mean())
    return Distance(
        error, float(bound_S.mean()), float(np.exp(logq_S).sum()), float(steps_S.mean())
    )


def one_by_one(chosen_SL: np.ndarray) -> Iterator[np.ndarray]:
    """The chosen positions, one of each text at a time, from left to right."""
    rank_SL = np.cumsum(chosen_SL, axis=1)
    for rank in range(1, int(rank_SL[:, -1].max()) + 1):
        yield chosen_SL & (rank_SL == rank)
