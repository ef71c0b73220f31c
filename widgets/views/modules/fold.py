"""Fold of modules: which feed-forward each token of each text took in every layer.

In come the `modules/text/position` blobs of a run, [tokens, layers] of 0 (none), 1 (small) and 2
(big), and the tokens that were said; out goes one frame with the grids of the texts, each before
its twin in hindsight.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Blob, Token
from widgets.canvas.fold import LaneFold
from widgets.theme import figure

QUESTION = "Which tokens got the big feed-forward, and in which layers?"
EMPTY = "No token yet. Start a run of a model with two feed-forwards a layer: its tokens fill in."
TAKEN = "modules/"
TWIN = " in hindsight"
NONE, SMALL, BIG = range(3)
MOST = 24  # texts drawn; the first


class ModuleGrid(LaneFold):
    """Columns by text, one for each token."""

    question, empty = QUESTION, EMPTY
    own = (*LaneFold.own, "taken", "words")
    totals = ("tokens",)

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, tuple[tuple[int, str], ...]] = {}  # text -> first position, blob
        self.words: dict[str, tuple[tuple[int, str], ...]] = {}  # text -> position, word

    def take(self, event: AnyEvent) -> None:
        match event:
            case Blob() if event.name.startswith(TAKEN) and event.ref in self.blobs:
                text, _, place = event.name.removeprefix(TAKEN).rpartition("/")
                if not place.isdecimal() or self.blobs[event.ref].ndim != 2:
                    return
                self.lane(text)
                # What was taken away and computed again stands where it stood.
                before = (each for each in self.taken.get(text, ()) if each[0] < int(place))
                self.taken[text] = (*before, (int(place), event.ref))
            case Token() if event.thread in self.taken and event.accepted:
                first, ref = self.taken[event.thread][-1]
                at = first + len(self.blobs[ref])
                self.words[event.thread] = (*self.words.get(event.thread, ()), (at, event.text))

    def draw(self) -> dict[str, Any]:
        shown = self._shown()
        grids = [self._grid(text) for text in shown]
        hues = [self.looks["hue"][self.lanes[self._owner(text)]] for text in shown]
        words = [self._words(text, len(grid)) for text, grid in zip(shown, grids, strict=True)]
        return {
            **self.named(),
            "texts": shown,
            "text_hue": np.array(hues, np.uint8),
            "layers": np.array([grid.shape[1] for grid in grids], np.uint16),
            "tokens": np.array([len(grid) for grid in grids], np.uint32),
            "taken": np.concatenate([g.ravel() for g in grids] or [np.zeros(0)]).astype(np.uint8),
            "words": [word for text in words for word in text],
            "left_out": len(self.taken) - len(shown),
            "figures": self._figures([self._grid(text) for text in self._served()]),
        }

    def _served(self) -> list[str]:
        """Texts themselves, without their twins."""
        return [text for text in self.taken if self._owner(text) == text]

    def _owner(self, text: str) -> str:
        """Whose twin a text is; else itself."""
        owner = text.removesuffix(TWIN)
        return owner if owner in self.lanes else text

    def _shown(self) -> list[str]:
        pairs = [[text, text + TWIN] for text in self._served()]
        return [text for pair in pairs for text in pair if text in self.taken][:MOST]

    def _grid(self, text: str) -> np.ndarray:
        """[tokens, layers]; positions whose keys came from another's cache took nothing here."""
        parts = self.taken[text]
        last = parts[-1][0] + len(self.blobs[parts[-1][1]])
        grid = np.zeros((last, self.blobs[parts[-1][1]].shape[1]), np.uint8)
        for first, ref in parts:
            part = self.blobs[ref]
            grid[first : first + len(part), : part.shape[1]] = part[:, : grid.shape[1]]
        return grid

    def _words(self, text: str, tokens: int) -> list[str]:
        said = dict(self.words.get(self._owner(text), ()))
        return [said.get(at, "") for at in range(tokens)]

    def _figures(self, grids: list[np.ndarray]) -> list[list[str]]:
        every = np.concatenate([grid.ravel() for grid in grids] or [np.zeros(0)])
        if not every.size:
            return []
        kinds = (("tokens", None), ("big", BIG), ("small", SMALL), ("left out", NONE))
        return [
            [name, figure(sum(map(len, grids))) if kind is None
             else figure(float((every == kind).mean()), "%")]
            for name, kind in kinds
        ]  # fmt: skip
