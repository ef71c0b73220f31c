"""Waits over the pace of the input, streaming beside batch, on a virtual clock.

The model really thinks about the first problem of the config; only what a pass lasts is given.
"""

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.events import AnyEvent, Mark, Span, Token
from engine.reasoning.reading.config import ReadingConfig
from engine.reasoning.reading.readers import drawn, readers_of
from engine.reasoning.reading.waits import ROUNDING
from engine.reasoning.streams.loop import go
from engine.reasoning.streams.words import StreamWords
from engine.reasoning.threads.mind import Mind

PASSES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0)  # passes between two tokens of the input
ANSWER, ONSET = "Wait for the answer", "Wait for the first thought"
FACTS = {
    ANSWER: {"x": "between two input tokens (passes)", "y": "after the input is whole (passes)"},
    ONSET: {"x": "between two input tokens (passes)", "y": "input read before it (tokens)"},
}


def curves(config: ReadingConfig, mind: Mind, words: StreamWords) -> dict[str, np.ndarray]:
    """Blobs by name for the view of curves."""
    found: dict[str, np.ndarray] = {}
    for kind in ("streaming", "batch"):
        points = [_point(config, mind, words, kind, between) for between in PASSES]
        for row, panel in enumerate((ANSWER, ONSET)):
            found[f"curve/{panel}/{kind} thinking"] = np.array(
                [PASSES, [point[row] for point in points]], float
            )
    return found


def _point(
    config: ReadingConfig, mind: Mind, words: StreamWords, kind: str, between: float
) -> tuple[float, float]:
    """Passes from the input's last token to the answer, and tokens read before a thought."""
    config = update(config, {"policy": kind, "pace": between * config.pass_s, "problems": 1})
    events: list[AnyEvent] = []
    clock = VirtualClock()
    readers = readers_of(config, mind, words, clock, events.append, drawn(config))
    go(readers, readers[0].caches, clock, lambda now: None, config.pass_s)
    whole = (len(readers[0].input) - 1) * config.pace
    end = next(e.time for e in events if type(e) is Mark and e.name == "answer")
    tokens = [e for e in events if type(e) is Token]
    thought = next(e.time for e in tokens if e.thread == "think")
    onset = sum(e.thread == "read" and e.time <= thought for e in tokens)
    passes = sum(type(e) is Span and whole + ROUNDING < e.time <= end for e in events)
    return float(passes), float(onset)
