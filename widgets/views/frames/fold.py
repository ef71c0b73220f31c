"""Fold of frames: what was shown, made before or after its action was told, and what was refused.

In come the `frames/number/state/action/step/allowed` blobs of a run, cells [2, rows, columns] each;
out goes one frame with the newest tiles in order, those refused for a frame before it.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Blob
from widgets.canvas.fold import CanvasFold
from widgets.theme import figure

QUESTION = "Which frames were made ahead, and which thrown away?"
EMPTY = "No frame yet. Start a run of a game: its frames stand here as they are shown."
FILM = "frames/"
STATES = ("given", "asked", "kept", "refused")
MOST = 240  # tiles drawn, the newest


class FrameStrip(CanvasFold):
    """Tiles in order of appearance."""

    question, empty = QUESTION, EMPTY
    own = ("tiles", "counts")

    def __init__(self) -> None:
        super().__init__()
        self.tiles: list[tuple[int, str, str, int, bool, str]] = []
        self.counts = dict.fromkeys((*STATES, "wrong"), 0)

    def take(self, event: AnyEvent) -> None:
        if not isinstance(event, Blob) or not event.name.startswith(FILM):
            return
        if event.ref not in self.blobs:
            return
        number, state, action, step, right = event.name.split("/")[1:6]
        wrong = right == "wrong"
        self.tiles.append((int(number), state, action, int(step), wrong, event.ref))
        self.counts[state] += 1
        self.counts["wrong"] += wrong

    def draw(self) -> dict[str, Any]:
        shown = self.tiles[-MOST:]
        cells = [self.blobs[tile[5]] for tile in shown]
        rows, columns = cells[0].shape[1:] if cells else (0, 0)
        flat = np.concatenate([np.where(c[1], 2, c[0]).ravel() for c in cells] or [np.zeros(0)])
        return {
            "any": bool(self.tiles),
            "number": np.array([tile[0] for tile in shown], np.uint32),
            "state": np.array([STATES.index(tile[1]) for tile in shown], np.uint8),
            "action": [tile[2] for tile in shown],
            "step": np.array([tile[3] for tile in shown], np.uint16),
            "wrong": np.array([tile[4] for tile in shown], np.uint8),
            "cells": flat.astype(np.uint8),
            "rows": rows,
            "columns": columns,
            "left_out": len(self.tiles) - len(shown),
            "figures": self._figures(),
        }

    def _figures(self) -> list[list[str]]:
        made = self.counts["asked"] + self.counts["kept"]
        if not made:
            return []
        return [
            ["frames shown", figure(made)],
            ["made ahead of their action", figure(self.counts["kept"] / made, "%")],
            ["thrown away", figure(self.counts["refused"])],
            ["not allowed by the game", figure(self.counts["wrong"])],
        ]
