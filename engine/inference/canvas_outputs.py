"""Canvas outputs: decides places of the blocks of masks that a step has seen, and tells of each.

Beside the log lies a grid for each step of each block (`GRID`), of the first so many. Listeners and
stops go by the tokens whose predecessors are all decided, from left to right.

Shape letters: L places of a block, V vocabulary.
"""

from collections.abc import Callable, MutableMapping

import numpy as np

from engine.core.events import Blob, Token
from engine.inference.detokenizer import Detokenizer
from engine.inference.requests.canvas import Canvas, Decided
from engine.inference.requests.request import LOST, Request
from engine.inference.requests.step import Result, Step
from engine.inference.scheduler import Scheduler

Watch = Callable[[Request, int, int, str, Result, str], str]
"""Stop texts and listeners of a request, of sample s, its token and text; why it ends."""

MOST = 1 << 22  # numbers that grids may hold in all: a server's run would grow without an end
GRID = "unmasking"  # blobs of request/step: [3, L] scores, tokens that stand, decided now


class CanvasOutputs:
    """Takes in what steps say of blocks, for the requests of one engine."""

    def __init__(
        self, scheduler: Scheduler, pieces: Detokenizer, ends_V: np.ndarray,
        blobs: MutableMapping[str, np.ndarray] | None, quiet: bool,
    ) -> None:  # fmt: skip
        """`blobs`: where grids are put, if anywhere; `quiet`: no tokens are told either."""
        self.prefill, self.rows = scheduler.prefill, scheduler.rows
        self.pieces, self.ends_V, self.blobs = pieces, ends_V, blobs
        self.emit, self.quiet, self.room = scheduler.cache.emit, quiet, MOST

    def take(
        self, step: Step, result: Result, now: float, watch: Watch
    ) -> list[tuple[Request, str]]:
        """Places are decided, and nothing of what was computed is kept: every token saw the masks.
        Returns who has ended and why."""
        ended = []
        for row, p_LV in result.canvases.items():
            request = step.requests[row]
            canvas = request.canvas
            assert canvas is not None
            self.rows.cached[row] = 0
            if np.isnan(p_LV[:, 0]).any():  # of a place: all of it then
                self.prefill.done(request)
                ended.append((request, LOST))
                continue
            decided = canvas.decide(p_LV, request.seed, request.sampling.temperature)
            first = int(self.rows.prompt[row])
            text_L = self.rows.tokens[row, first : first + len(p_LV)]
            text_L[decided.chosen_L] = decided.tokens_L[decided.chosen_L]
            if not self.quiet:
                self._draw(request, canvas, decided, text_L, now)
                self._tell(request, decided, text_L, now)
            reason = self._hear(request, canvas, text_L, watch)
            if reason:
                self.rows.known[row] = first + canvas.told
                self.prefill.done(request)
                ended.append((request, reason))
        return ended

    def _draw(
        self, request: Request, canvas: Canvas, decided: Decided, text_L: np.ndarray, now: float
    ) -> None:
        grid_3L = np.stack([decided.scores_L, text_L, decided.chosen_L]).astype(np.float32)
        if self.blobs is None or grid_3L.size > self.room:
            return
        self.room -= grid_3L.size
        ref = f"{GRID}/{request.id}/{canvas.steps - 1}"
        self.blobs[ref] = grid_3L
        self.emit(Blob(now, ref, ref, list(grid_3L.shape)))

    def _tell(self, request: Request, decided: Decided, text_L: np.ndarray, now: float) -> None:
        places = np.flatnonzero(decided.chosen_L).tolist()
        words = self.pieces.glance(text_L[places].tolist())
        for place, word in zip(places, words, strict=True):
            text = f"{place}:{word.strip()} "
            self.emit(Token(now, request.id, text, float(decided.logprobs_L[place])))

    def _hear(self, request: Request, canvas: Canvas, text_L: np.ndarray, watch: Watch) -> str:
        """Tokens that nothing undecided stands before any more; why the request ends there."""
        ends = bool(self.rows.ends[request.row])
        for place in range(canvas.told, canvas.frontier):
            token = int(text_L[place])
            stops = token in request.sampling.stop_tokens or (ends and self.ends_V[token])
            reason = "stop" if stops else ""
            canvas.told = place + 1
            if request.watched:
                text = self.pieces.push(request.id, token)
                likely = np.array([canvas.logprobs_L[place]], np.float32)
                said = Result(np.array([token], np.int32), likely, 0.0)
                reason = watch(request, 0, token, text, said, reason)
            if reason:
                return reason
        return "length" if canvas.told == len(text_L) else ""
