"""Fold of unmasking grids: of every text and step each position's score, token and whether it was
decided then.

In come the `unmasking/…` blobs of a run, [3, L] each, and what its tokens read as; out goes one
frame with the cells of every step so far, text by text.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Blob, Branch, Token
from widgets.canvas.fold import LaneFold
from widgets.theme import figure

QUESTION = "Which positions are decided when, and how sure was the model of them?"
EMPTY = "No step yet. Start a run of a masked-diffusion model: its texts fill in here."
GRID = "unmasking/"
MOST = 24  # texts drawn; the first


class UnmaskingGrid(LaneFold):
    """Grids by text, a row for each step."""

    question, empty = QUESTION, EMPTY
    own = (*LaneFold.own, "asked", "grids", "words")
    totals = ("texts", "steps")

    def __init__(self) -> None:
        super().__init__()
        self.words: dict[int, str] = {}  # of tokens by number
        self.asked: dict[str, str] = {}
        self.grids: dict[str, tuple[str, ...]] = {}  # text -> blobs of its steps

    def take(self, event: AnyEvent) -> None:
        match event:
            case Token() if event.thread in self.grids:
                self._read(event)
            case Branch() if event.why and event.state == "running":
                self.asked[event.thread] = event.why
            case Blob() if event.name.startswith(GRID) and event.ref in self.blobs:
                thread = event.name.removeprefix(GRID).rpartition("/")[0]
                self.lane(thread)
                self.grids[thread] = (*self.grids.get(thread, ()), event.ref)

    def _read(self, event: Token) -> None:
        """A token's text, "place:word", says how the number at that place reads."""
        place, _, word = event.text.strip().partition(":")
        grid = self.blobs[self.grids[event.thread][-1]]
        if place.isdecimal() and int(place) < grid.shape[1]:
            self.words[int(grid[1, int(place)])] = word

    def draw(self) -> dict[str, Any]:
        shown = list(self.grids)[:MOST]
        cells = [np.stack([self.blobs[ref] for ref in self.grids[text]], 1) for text in shown]
        flat = [
            np.concatenate([c[row].ravel() for c in cells] or [np.zeros(0)]) for row in range(3)
        ]
        stands = [np.maximum.accumulate(c[2], 0).ravel() > 0 for c in cells] or [np.zeros(0, bool)]
        standing, numbers = np.concatenate(stands), flat[1].astype(np.int64)
        said = np.unique(numbers[standing])
        return {
            **self.named(),
            "asked": [self.asked.get(text, "") for text in shown],
            "texts": shown,
            "words": [self.words.get(number, str(number)) for number in said.tolist()],
            "mask": -1,
            "steps": np.array([c.shape[1] for c in cells], np.uint32),
            "places": np.array([c.shape[2] for c in cells], np.uint32),
            "score": flat[0].astype(np.float32),
            "token": np.where(standing, np.searchsorted(said, numbers), -1).astype(np.int32),
            "decided": flat[2].astype(np.uint8),
            "left_out": len(self.grids) - len(shown),
            "figures": self._figures(cells),
        }

    def _figures(self, cells: list[np.ndarray]) -> list[list[str]]:
        if not cells:
            return []
        steps = sum(cell.shape[1] for cell in cells)
        decided = sum(float(cell[2].sum()) for cell in cells)
        return [
            ["texts", figure(len(self.grids))],
            ["steps", figure(steps)],
            ["tokens decided a step", figure(decided / steps)],
        ]
