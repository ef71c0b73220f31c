"""The next token of each thread from its logits: the likeliest, or a draw under its own seed.

Shape letters: R threads, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from engine.inference.executors.tensors.sampler import adjust
from engine.inference.requests.request import Sampling
from engine.kernels import sample
from engine.kernels.sample import Wishes
from engine.reasoning.threads.thread import Thread


def draw(
    logits_RV: np.ndarray,
    threads: Sequence[Thread],
    wish: Sampling,
    prompt: Sequence[int],
    eos: tuple[int, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and their log-probabilities under the model itself.

    A draw depends on the thread's seed and on how many tokens it has generated, on nothing else.
    """
    best_R, logprob_R = sample.greedy(logits_RV)
    if plain(wish):
        return best_R, logprob_R
    scores_RV = logits_RV
    if not unadjusted(wish):
        scores_RV = logits_RV.copy()
        for scores_V, thread in zip(scores_RV, threads, strict=True):
            seen = np.array([*prompt, *thread.tokens], np.int32)
            adjust(scores_V, wish, seen, len(prompt), eos)
    cuts = wish.temperature, wish.top_k, wish.top_p, wish.min_p
    columns = [(*cuts, thread.seed, len(thread.tokens)) for thread in threads]
    tokens_R = sample.sample(
        scores_RV, Wishes(*[np.array(column) for column in zip(*columns, strict=True)])
    )
    rows = np.arange(len(threads))
    return tokens_R, logprob_R + logits_RV[rows, tokens_R] - logits_RV[rows, best_R]


def plain(wish: Sampling) -> bool:
    """Whether the likeliest token is all that is asked for."""
    return wish.temperature == 0 and unadjusted(wish)


def unadjusted(wish: Sampling) -> bool:
    """Whether logits are drawn from as they are, without penalties and biases."""
    return (
        wish.repetition_penalty == 1
        and not (wish.presence_penalty or wish.frequency_penalty)
        and not (wish.logit_bias or wish.min_tokens)
    )
