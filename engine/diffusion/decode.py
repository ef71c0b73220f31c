"""Masked-diffusion decoding, and how far from the joint it must end and does.

Every step the model says what may stand at each masked position, a policy picks positions, and all
of those are drawn at once, each by itself. As a policy's choice depends on the text alone, the
probability of an answer is the product of what was drawn along its own path: the error, the
Kullback-Leibler divergence from joint to decoder, and its lower bound, the sum of the steps'
conditional total correlations (ParallelBench, arXiv 2510.04767), are both exact.

This loop is its own, not the serving engine's, though much of that would do: where each token of a
text is a row of one token over the text's pages, that sees all of them, paged attention is
bidirectional as it stands; a text's masks could lie behind its prompt as drafts do, with pages of
their own; and a row whose `cached` falls back to none computes its whole text again. Four things
stand in the way. Drafts live for one step: here they stay, each decided or not, until all are. A
sample tells the token after its place, a mask's the token at it. Verification keeps a prefix of the
drafts; here what holds lies anywhere, and nothing joins the known tokens, whose number pages,
limits, stops and the log's tokens go by, before all of it does. And preempted or swapped rows come
back with known tokens alone: what is decided of the others would be lost.

Shape letters: S answers of a prompt, N texts, L positions of an answer, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.diffusion.joints import Joint
from engine.diffusion.model import Predictor
from engine.diffusion.unmasking import Unmasking

LEAST = 1e-300  # a probability's logarithm is that of this at least


@dataclass(frozen=True)
class Decided:
    """One step of N texts: positions decided, all positions' scores, and the texts after it."""

    chosen_NL: np.ndarray
    scores_NL: np.ndarray
    texts_NL: np.ndarray
    revealed_NL: np.ndarray  # where they stand
    logprobs_NL: np.ndarray  # of what stands there now, where it was decided in this step


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
        for part_SL in _one_by_one(chosen_SL) if peeks else (chosen_SL,):
            if peeks:
                p_SLV = predict(joint, answers, revealed_SL)
            own_SL = np.take_along_axis(p_SLV, answers[..., None], 2)[..., 0]
            logq_S += np.where(part_SL, np.log(np.maximum(own_SL, LEAST)), 0.0).sum(1)
            revealed_SL = revealed_SL | part_SL
    error = float((-np.log(len(answers)) - logq_S).mean())
    return Distance(
        error, float(bound_S.mean()), float(np.exp(logq_S).sum()), float(steps_S.mean())
    )


def _one_by_one(chosen_SL: np.ndarray) -> Iterator[np.ndarray]:
    """The chosen positions, one of each text at a time, from left to right."""
    rank_SL = np.cumsum(chosen_SL, axis=1)
    for rank in range(1, int(rank_SL[:, -1].max()) + 1):
        yield chosen_SL & (rank_SL == rank)


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
        for part_NL in _one_by_one(chosen_NL) if peeks else (chosen_NL,):
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
