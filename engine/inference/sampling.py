"""From logits to tokens: penalties, biases, temperature, top-k, top-p, min-p, then one draw.

Greedy rows are done together; a row that wants more is done by itself. Shape letters: R rows of
logits, S samples, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from engine.inference.draws import choose
from engine.inference.request import Request, Sampling
from engine.inference.step import Step


def likeliest(logits_RV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest token of each row (the lowest number among equals) and its log-probability.

    In numpy, one row after another: a second pool of threads would take the kernels' cores.
    """
    best_R = logits_RV.argmax(-1)
    top_R = logits_RV[np.arange(len(best_R)), best_R]
    logprob_R = np.empty(len(best_R), np.float32)
    room_V = np.empty(logits_RV.shape[-1], logits_RV.dtype)
    for r, (logits_V, top) in enumerate(zip(logits_RV, top_R, strict=True)):
        np.exp(np.subtract(logits_V, top, out=room_V), out=room_V)
        logprob_R[r] = -np.log(room_V.sum())
    return best_R.astype(np.int32), logprob_R


def sample(
    logits_RV: np.ndarray,
    from_S: np.ndarray,
    step: Step,
    requests: Sequence[Request],
    eos: tuple[int, ...],
) -> tuple[np.ndarray, np.ndarray, dict[int, list[tuple[int, float]]]]:
    """Tokens, their log-probabilities under the model itself, and the likeliest where asked for.

    `from_S[s]` is the row of logits that sample s is drawn from; `requests` are by batch row.
    """
    best_R, logprob_R = likeliest(logits_RV)
    tokens_S, logprobs_S = best_R[from_S], logprob_R[from_S]
    tops: dict[int, list[tuple[int, float]]] = {}
    rows = step.rows
    for s in np.flatnonzero(~rows.plain[step.sample_rows_S]).tolist():
        row = int(step.sample_rows_S[s])
        logits_V = logits_RV[from_S[s]]
        request, known = requests[row], int(rows.known[row])
        seen = rows.tokens[row, :known]
        token = pick(logits_V, request.sampling, seen, int(rows.prompt[row]), request.seed, eos)
        logprob_V = log_softmax(logits_V)
        tokens_S[s], logprobs_S[s] = token, logprob_V[token]
        if request.sampling.logprobs:
            tops[s] = top(logprob_V, request.sampling.logprobs)
    return tokens_S, logprobs_S, tops


def pick(
    logits_V: np.ndarray,
    wish: Sampling,
    seen: np.ndarray,
    prompt: int,
    seed: int,
    eos: tuple[int, ...] = (),
) -> int:
    """The next token after `seen`, whose first `prompt` tokens are the prompt."""
    scores_V = adjusted(logits_V, wish, seen, prompt, eos)
    if wish.temperature == 0:
        return int(scores_V.argmax())
    return choose(probabilities(scores_V, wish), seed, len(seen))


def adjusted(
    logits_V: np.ndarray, wish: Sampling, seen: np.ndarray, prompt: int, eos: tuple[int, ...]
) -> np.ndarray:
    """Logits with penalties and biases on, and with ends forbidden before `min_tokens`.

    Repetition (Keskar et al., arXiv 1909.05858) covers the prompt; presence and frequency count
    the answer alone.
    """
    scores_V = logits_V.astype(np.float64)
    if wish.repetition_penalty != 1:
        old = np.unique(seen)
        value = scores_V[old]
        penalty = wish.repetition_penalty
        scores_V[old] = np.where(value > 0, value / penalty, value * penalty)
    if wish.presence_penalty or wish.frequency_penalty:
        used, counts = np.unique(seen[prompt:], return_counts=True)
        scores_V[used] -= wish.presence_penalty + wish.frequency_penalty * counts
    for token, bias in wish.logit_bias:
        if token < len(scores_V):
            scores_V[token] += bias
    if len(seen) - prompt < wish.min_tokens:
        ends = (*(() if wish.ignore_eos else eos), *wish.stop_tokens)
        scores_V[[t for t in ends if t < len(scores_V)]] = -np.inf
    return scores_V


def probabilities(scores_V: np.ndarray, wish: Sampling) -> np.ndarray:
    """What is drawn from: softmax at the temperature, cut by top-k, then top-p, then min-p.

    Unnormalised (the draw divides); each cut sees the distribution that the one before left.
    """
    scaled_V = scores_V / wish.temperature
    weights_V = np.exp(scaled_V - scaled_V.max())
    if 0 < wish.top_k < len(weights_V):
        least = np.partition(weights_V, -wish.top_k)[-wish.top_k]
        weights_V[weights_V < least] = 0.0
    if wish.top_p < 1:
        order = np.argsort(-weights_V, kind="stable")
        before = np.cumsum(weights_V[order]) - weights_V[order]
        weights_V[order[before >= wish.top_p * weights_V.sum()]] = 0.0
    if wish.min_p > 0:
        weights_V[weights_V < wish.min_p * weights_V.max()] = 0.0
    return weights_V


def log_softmax(logits_V: np.ndarray) -> np.ndarray:
    """Log-probabilities in float64."""
    shifted_V = logits_V.astype(np.float64) - float(logits_V.max())
    return shifted_V - np.log(np.exp(shifted_V).sum())


def top(logprob_V: np.ndarray, count: int) -> list[tuple[int, float]]:
    """The `count` likeliest tokens, likeliest first; the lower number among equals."""
    order = np.lexsort((np.arange(len(logprob_V)), -logprob_V))[:count]
    return [(int(token), float(logprob_V[token])) for token in order]
