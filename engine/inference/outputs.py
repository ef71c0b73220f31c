"""Output processing: appends sampled tokens to their requests, decodes text, emits Token events,
detects stop conditions."""

from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from itertools import repeat

import numpy as np

from engine.core.events import Branch, Token
from engine.core.memory import demand_zeros
from engine.inference.canvas_outputs import CanvasOutputs
from engine.inference.detokenizer import Detokenizer
from engine.inference.drafted_outputs import DraftedOutputs, Kept
from engine.inference.requests.guide import TANGLED
from engine.inference.requests.prompt_scores import PromptScores, unscored
from engine.inference.requests.request import LOST, Request
from engine.inference.requests.step import Result, Step
from engine.inference.requests.stop_texts import StopTexts
from engine.inference.scheduler import Scheduler
from engine.kernels import paged_rows
from engine.kernels.compiled import settled

DEAF = "its listener failed"


class OutputProcessor:
    """Takes results in. `ends_V` says which tokens end an answer of the model."""

    def __init__(
        self, scheduler: Scheduler, pieces: Detokenizer, vocab: int, eos: tuple[int, ...],
        quiet: bool = False, blobs: MutableMapping[str, np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        """`quiet`: tokens are neither told nor put into text; `blobs`: where grids are put."""
        self.quiet = quiet
        self.scheduler, self.pieces = scheduler, pieces
        self.running, self.rows = scheduler.running, scheduler.rows
        self.emit = scheduler.cache.emit
        self.eos = eos
        self.ends_V = demand_zeros(vocab, np.bool_)
        self.ends_V[[token for token in eos if token < vocab]] = True
        self.holds = scheduler.config.batching.holds_until_all_end
        self.loses = scheduler.config.batching.loses_tokens  # wrong: all decoded tokens but one
        self.drafted: DraftedOutputs | None = None
        if scheduler.config.speculation.drafts:
            self.drafted = DraftedOutputs(scheduler.speculator, self.running, pieces)
        drawn = blobs if scheduler.config.executor.real else None  # what is modelled says nothing
        self.canvases = CanvasOutputs(scheduler, pieces, self.ends_V, drawn, quiet)
        self._append = settled(paged_rows.append)
        self.keep: Callable[[Request], None] | None = None  # told of requests that have ended
        self.kept: Kept | None = None  # of the step that is taken in, where it has drafts

    def take(self, step: Step, result: Result, now: float) -> None:
        """Everything a step's result changes, at `now` (seconds)."""
        if self.loses and step.decodes > 1 and step.drafts_B is None:
            step, result = _one_arrives(step, result)
        for row, scores in result.prompts.items():
            _score(step.requests[row], scores)
        if step.parents_N is not None:
            result = self.scheduler.speculator.straighten(step, result)
        special = self.append(step, result)
        if np.isnan(result.logprobs_S).any():  # whoever it is looks closer
            special = np.arange(len(step.sample_rows_S if self.kept is None else self.kept.rows_T))
        self.running.charge(step)
        ended = self.tell(step, result, special, now)
        if result.canvases:
            ended += self.canvases.take(step, result, now, self.watch)
        for request, reason in ended:
            if reason in (DEAF, TANGLED, LOST):
                request.fault = "" if reason == DEAF else reason
                self.scheduler.abort(request, reason)
            else:
                self.finish(request, reason, now)
        if self.scheduler.padded and self.scheduler.padded == self.rows.count:
            self.scheduler.release_padding()

    def append(self, step: Step, result: Result) -> np.ndarray:
        """Tokens join their rows; which samples (with drafts: takers) need a closer look."""
        self.kept = None
        if self.drafted is not None and step.drafts_B is not None:
            if step.drafted:
                self.drafted.speculator.adapt(result)
            self.kept, takers = self.drafted.append(step, result.tokens_S, self.ends_V)
            return np.array(takers, np.int64)
        rows, rows_S = self.rows, step.sample_rows_S
        special_S = np.empty(len(rows_S), np.int64)
        count = self._append(
            rows.columns, step.rows_B, step.queries_B, rows_S, result.tokens_S, self.ends_V,
            special_S,
        )  # fmt: skip
        return special_S[:count]

    def finish(self, request: Request, reason: str, now: float) -> None:
        """`request` has its answer."""
        rows, row = self.rows, request.row
        if self.holds or not self.quiet:  # else it gets them as it leaves its row
            request.tokens = rows.tokens[row, : rows.known[row]].copy()
        request.state, request.reason = "finished", reason
        self.pieces.forget(request.id)
        if not request.sampling.stop and not self.quiet:
            answer = request.generated.tolist()
            request.text = self.pieces.text(answer[:-1] if reason == "stop" else answer)
        if self.keep is not None:
            self.keep(request)
        self.emit(Branch(now, request.id, request.parent, "finished", reason))
        if self.holds:
            rows.padding[row] = True
            self.scheduler.padded += 1
        else:
            self.scheduler.allocator.give_up(request)
        self.scheduler.over(request)

    def tell(
        self, step: Step, result: Result, special: np.ndarray, now: float
    ) -> list[tuple[Request, str]]:
        """Token events in the order of rows; returns who has ended and why."""
        if self.drafted is not None and self.kept is not None:
            return self.drafted.tell(self.kept, result, special.tolist(), now, self._ends)
        if self.quiet:
            return self._ended(step, result, special, None)
        rows_S, tokens_S = step.sample_rows_S.tolist(), result.tokens_S.tolist()
        names = self.running.names
        if not step.whole:
            names = [names[row] for row in rows_S]
        texts = self.pieces.many(names, tokens_S)
        events = map(Token, repeat(now), names, texts, result.logprobs_S.tolist())
        deque(map(self.emit, events), 0)  # all of them, without a loop of our own
        return self._ended(step, result, special, texts)

    def _ended(
        self, step: Step, result: Result, special: np.ndarray, texts: list[str] | None
    ) -> list[tuple[Request, str]]:
        """Who of those that need a closer look has ended, and why."""
        ended = []
        for s in special.tolist():
            request = self.running.requests[step.sample_rows_S[s]]
            text = "" if texts is None else texts[s]
            reason = self._ends(request, s, int(result.tokens_S[s]), text, result)
            if reason:
                ended.append((request, reason))
        return ended

    def _ends(self, request: Request, s: int, token: int, text: str, result: Result) -> str:
        """Why `request` ends with sample s, once its listener has heard; empty: it goes on."""
        if np.isnan(result.logprobs_S[s]):
            return LOST
        reason = self._look(request, token)
        return self.watch(request, s, token, text, result, reason) if request.watched else reason

    def _look(self, request: Request, token: int) -> str:
        """Why `request` ends with this token; empty where it goes on."""
        rows, row = self.rows, request.row
        if rows.known[row] > rows.floor[row]:
            if rows.ends[row] and self.ends_V[token]:
                return "stop"
            if token in request.sampling.stop_tokens:
                return "stop"
        return "length" if rows.known[row] >= rows.limit[row] else ""

    def watch(
        self, request: Request, s: int, token: int, text: str, result: Result, reason: str
    ) -> str:
        """Stop texts, log-probabilities and listeners of one request; returns why it ends."""
        wish, logprob = request.sampling, float(result.logprobs_S[s])
        if wish.logprobs:
            request.logprobs.append(logprob)
            request.tops.append(tuple(result.tops.get(s, ())))
        shown = text
        if request.guide is not None:
            request.guide.take(token)
            if request.guide.broken:
                return TANGLED
        if wish.stop:
            allowed = self.rows.known[request.row] > self.rows.floor[request.row]
            reason, shown = self._stop_text(request, text, reason, bool(allowed))
        elif reason == "stop":
            shown = ""
        if request.on_token is not None:
            try:
                request.on_token(request, token, shown, logprob)
            except Exception:  # whatever a listener does wrong ends its own request, not the loop
                request.on_token = None
                return DEAF
        return reason

    def _stop_text(
        self, request: Request, text: str, reason: str, allowed: bool
    ) -> tuple[str, str]:
        """Why it ends now, and the text that can be shown: never part of a stop text."""
        stops = request.sampling.stop
        if request.stops is None:
            request.stops = StopTexts(stops, request.text)
        searched = max(0, len(request.text) - max(map(len, stops)) + 1)
        if reason != "stop":
            request.text += text
            request.stops.push(text)
        found = [at for stop in stops if (at := request.text.find(stop, searched)) >= 0]
        if found and allowed:
            request.text, reason = request.text[: min(found)], "stop"
        safe = len(request.text)
        if not reason:
            safe -= request.stops.held_back
        shown = request.text[request.told : safe]
        request.told = max(request.told, safe)
        return reason, shown


def _score(request: Request, part: PromptScores) -> None:
    """Part of its prompt has been scored; after a preemption perhaps once more."""
    if request.prompt_scores is None:
        request.prompt_scores = unscored(0, len(request.prompt), part.tokens_NK.shape[1])
    request.prompt_scores.put(part)


def _one_arrives(step: Step, result: Result) -> tuple[Step, Result]:
    """What is left where of the decoding rows, in turns, only one's token arrives."""
    lost = np.arange(step.decodes) != step.number % step.decodes
    arrived_B, arrived_S = np.ones(len(step.rows_B), bool), np.ones(len(step.sample_rows_S), bool)
    arrived_B[: step.decodes], arrived_S[: step.decodes] = ~lost, ~lost
    left = replace(
        step,
        rows_B=step.rows_B[arrived_B],
        queries_B=step.queries_B[arrived_B],
        sample_rows_S=step.sample_rows_S[arrived_S],
        whole=False,
    )
    tokens_S, logprobs_S = result.tokens_S[arrived_S], result.logprobs_S[arrived_S]
    return left, replace(result, tokens_S=tokens_S, logprobs_S=logprobs_S, tops={})
