"""Drafted outputs: appends the drafts that held and one token more to each request, and tells of
all that was drafted.

Shape letters: D sequences that decode, S samples, T takers (decodes, then requests whose prompt
is done), each with all its samples in a row.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from engine.core.events import Token
from engine.inference.detokenizer import Detokenizer
from engine.inference.requests.request import Request
from engine.inference.requests.step import Result, Step
from engine.inference.running import Running
from engine.inference.speculator import Speculator
from engine.kernels.drafts import chains

Ends = Callable[[Request, int, int, str, Result], str]
"""Why a request ends with sample s, its token and text; empty where it goes on."""


@dataclass(slots=True)
class Kept:
    """Who takes how many tokens of a step."""

    rows_T: np.ndarray
    first_T: np.ndarray  # their first samples
    drafts_T: np.ndarray
    kept_T: np.ndarray  # drafts that held
    drafts_S: np.ndarray  # the draft after each sample; nonsense after the last


class DraftedOutputs:
    """Takes steps with drafts in, for rows that decode and rows whose prompt is done."""

    def __init__(self, speculator: Speculator, running: Running, pieces: Detokenizer) -> None:
        self.speculator, self.running, self.pieces = speculator, running, pieces
        self.rows, self.emit = running.rows, running.cache.emit

    def append(
        self, step: Step, tokens_S: np.ndarray, ends_V: np.ndarray
    ) -> tuple[Kept, list[int]]:
        """Tokens join their rows; which takers need a closer look."""
        assert step.drafts_B is not None
        rows, count = self.rows, step.decodes
        found = self.speculator.accept(step, tokens_S, ends_V)
        first_D, kept_D, special_T, drafts_S = found
        told = Kept(step.rows_B[:count], first_D, step.drafts_B[:count], kept_D, drafts_S)
        if len(step.rows_B) > count:
            rows.cached[step.rows_B[count:]] += step.queries_B[count:]
            rows_N = step.sample_rows_S[step.drafted + count :]
            self._first_tokens(told, rows_N, tokens_S)
            ends_N = ends_V[tokens_S[len(tokens_S) - len(rows_N) :]] & rows.ends[rows_N]
            special_N = ends_N | (rows.known[rows_N] >= rows.due[rows_N])
            special_T = np.concatenate([special_T, special_N])
        return told, special_T.nonzero()[0].tolist()

    def _first_tokens(self, told: Kept, rows_N: np.ndarray, tokens_S: np.ndarray) -> None:
        """Rows whose prompt is done take the last of tokens_S, one each."""
        rows, own = self.rows, len(tokens_S) - len(rows_N)
        known_N, none = rows.known[rows_N], np.zeros(len(rows_N), np.int32)
        rows.flat[rows_N * rows.tokens.shape[1] + known_N] = tokens_S[own:]
        rows.known[rows_N] = known_N + 1
        told.rows_T = np.append(told.rows_T, rows_N)
        told.first_T = np.append(told.first_T, np.arange(own, len(tokens_S)))
        told.drafts_T, told.kept_T = np.append(told.drafts_T, none), np.append(told.kept_T, none)

    def tell(
        self, told: Kept, result: Result, special: list[int], now: float, ends: Ends
    ) -> list[tuple[Request, str]]:
        """Token events, refused drafts among them; who has ended and why."""
        tokens_S, sure_S = result.tokens_S.copy(), result.logprobs_S.copy()
        doubts_S = sure_S if result.draft_logprobs_S is None else result.draft_logprobs_S
        special_T = np.zeros(len(told.rows_T), np.bool_)
        special_T[special] = True
        rows_S, (refused_S, plain_S) = (
            np.empty(len(tokens_S), np.int64), np.empty((2, len(tokens_S)), np.bool_)
        )  # fmt: skip
        chains.told(
            told.rows_T, told.first_T, told.drafts_T, told.kept_T, special_T, told.drafts_S,
            doubts_S, tokens_S, sure_S, rows_S, refused_S, plain_S,
        )  # fmt: skip
        names = self.running.names
        branch_S = np.zeros(len(tokens_S), np.int32)
        if result.branch_S is not None:
            branch_S = result.branch_S
        self._emit(names, rows_S, tokens_S, sure_S, refused_S, plain_S, branch_S, now)
        ended = []
        for taker in special:
            place = slice(
                int(told.first_T[taker]), int(told.first_T[taker] + told.drafts_T[taker]) + 1
            )
            said = tokens_S[place].tolist(), sure_S[place].tolist()
            reason = self._follow(told, taker, said, result, now, ends)
            if reason:
                ended.append((self.running.requests[told.rows_T[taker]], reason))
        return ended

    def _emit(
        self, names: list[str], rows_S: np.ndarray, tokens_S: np.ndarray, sure_S: np.ndarray,
        refused_S: np.ndarray, plain_S: np.ndarray, branch_S: np.ndarray, now: float,
    ) -> None:  # fmt: skip
        """Events of all requests that nothing special happens to, at once."""
        who = [names[row] for row in rows_S[plain_S].tolist()]
        tokens, refused = tokens_S[plain_S].tolist(), refused_S[plain_S].tolist()
        said = [place for place, gone in enumerate(refused) if not gone]
        texts = self.pieces.glance(tokens)
        heard = self.pieces.many([who[place] for place in said], [tokens[p] for p in said])
        for place, text in zip(said, heard, strict=True):
            texts[place] = text
        accepted = (~refused_S[plain_S]).tolist()
        branches = branch_S[plain_S].tolist()
        events = map(Token, repeat(now), who, texts, sure_S[plain_S].tolist(), accepted, branches)
        deque(map(self.emit, events), 0)

    def _follow(
        self, told: Kept, taker: int, said: tuple[list[int], list[float]], result: Result,
        now: float, ends: Ends,
    ) -> str:  # fmt: skip
        """One request's tokens, one after another, up to the one that ends it; why it does."""
        rows, row = self.rows, int(told.rows_T[taker])
        request, name = self.running.requests[row], self.running.names[row]
        kept, first = int(told.kept_T[taker]), int(told.first_T[taker])
        before = int(rows.known[row]) - kept - 1
        for ahead in range(kept + 1):
            at = ahead if ahead < kept else len(said[0]) - 1
            token, sure = said[0][at], said[1][at]
            if ahead == kept and at > ahead:
                glances = self.pieces.glance(said[0][ahead:at])
                branches = [0] * len(glances)
                if result.branch_S is not None:
                    branches = result.branch_S[first + ahead : first + at].tolist()
                refused = zip(glances, said[1][ahead:at], branches, strict=True)
                for text, doubt, branch in refused:
                    self.emit(Token(now, name, text, doubt, False, branch))
            rows.known[row] = before + ahead + 1
            text = self.pieces.push(name, token)
            self.emit(Token(now, name, text, sure))
            reason = ends(request, first + ahead, token, text, result)
            if reason:
                rows.cached[row] = min(int(rows.cached[row]), int(rows.known[row]) - 1)
                return reason
        return ""
