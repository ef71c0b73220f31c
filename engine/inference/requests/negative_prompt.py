"""Negative prompts: what classifier-free guidance steers an answer away from.

A guided request has two rows: its own, and one with the negative prompt in the prompt's place and
the same answer. Shape letters: S samples, X of them guided.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from engine.core.errors import BadInput
from engine.inference.requests.request import Request, Sampling
from engine.inference.requests.step import Step


class Negatives(NamedTuple):
    """The negative rows of a step: tokens `starts_X` … `ends_X` of each are new."""

    samples_X: np.ndarray
    rows_X: np.ndarray  # of the persistent batch, whose block tables hold for both
    starts_X: np.ndarray
    ends_X: np.ndarray
    tokens: list[np.ndarray]  # the new ones of each


class NegativeRows:
    """How far the negative row of each guided request is computed."""

    def __init__(self) -> None:
        self.done: dict[int, int] = {}  # tokens, by the request's number

    def of(self, step: Step) -> Negatives | None:
        """What a step has to compute beside its rows; None where nothing is guided."""
        rows = step.rows
        if not rows.steers or not rows.steered[step.rows_B].any():
            return None
        numbers = {request.number for request in step.requests[: rows.count]}
        self.done = {number: done for number, done in self.done.items() if number in numbers}
        for row, start in zip(step.rows_B.tolist(), step.starts_B.tolist(), strict=True):
            if rows.steered[row]:  # what is computed again may lie on other pages
                number = step.requests[row].number
                self.done[number] = min(self.done.get(number, 0), start)
        samples_X = np.flatnonzero(rows.steered[step.sample_rows_S])
        rows_X = step.sample_rows_S[samples_X]
        starts, ends, tokens = [], [], []
        for row in rows_X.tolist():
            request, known, prompt = step.requests[row], int(rows.known[row]), rows.prompt[row]
            assert request.negative is not None
            said = np.append(request.negative, rows.tokens[row, prompt:known]).astype(np.int32)
            starts.append(self.done[request.number])
            ends.append(len(said))
            tokens.append(said[starts[-1] :])
            self.done[request.number] = len(said)
        if not tokens:
            return None
        starts_X, ends_X = np.array(starts, np.int32), np.array(ends, np.int32)
        return Negatives(samples_X, rows_X, starts_X, ends_X, tokens)


def lacking(wish: Sampling) -> str:
    """What is wrong with guidance as it is asked for; empty where nothing is."""
    if wish.guidance != 1.0 and not wish.negative_prompt:
        return (
            f"guidance {wish.guidance:g} needs a negative_prompt, which the answer is steered away "
            "from; give one, or leave guidance at 1"
        )
    if wish.guidance != 1.0 and wish.n > 1:
        return "guidance: a guided request has one answer; set n to 1, or guidance to 1"
    return ""


class Abilities(Protocol):
    """What `Facts` of an executor say of guidance."""

    @property
    def guides(self) -> bool: ...
    @property
    def bytes_per_state(self) -> float: ...
    @property
    def vocab(self) -> int: ...


def check(request: Request, encode: Callable[[str], list[int]] | None, facts: Abilities) -> None:
    """Give a guided request its negative prompt's tokens by `encode`. Raises BadInput."""
    wish, name = request.sampling, request.id or "request"
    if wish.guidance == 1.0:
        return
    if request.negative is None and (wrong := lacking(wish)):
        raise BadInput(f"{name}: {wrong}")
    if facts.bytes_per_state:
        raise BadInput(f"{name}: guidance of a model with a recurrent state; set it to 1")
    if not facts.guides:
        raise BadInput(f"{name}: guidance: no memory for a second cache; serve with fewer pages")
    if request.negative is None:
        if encode is None:
            raise BadInput(f"{name}: negative_prompt: this model has no tokenizer for a text")
        request.negative = np.array(encode(wish.negative_prompt), np.int32)
    if request.negative.min(initial=0) < 0 or request.negative.max(initial=0) >= facts.vocab:
        raise BadInput(f"{name}: the negative prompt has a token outside 0 to {facts.vocab - 1}")
    if not 0 < len(request.negative) <= len(request.prompt):
        raise BadInput(
            f"{name}: the negative prompt has {len(request.negative)} tokens, the prompt "
            f"{len(request.prompt)}; it may have no more"
        )
