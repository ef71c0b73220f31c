"""Reactions over the length of a turn: one stream that takes turns beside streams side by side.

The model really speaks, on a virtual clock on which a pass lasts as long as a row of input.
"""

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.events import AnyEvent
from engine.core.intervals import of_mean
from engine.reasoning.streams.caches import StreamCaches
from engine.reasoning.streams.config import StreamsConfig
from engine.reasoning.streams.loop import go
from engine.reasoning.streams.reactions import of_events
from engine.reasoning.streams.sessions import drawn, sessions_of
from engine.reasoning.streams.words import StreamWords
from engine.reasoning.threads.mind import Mind
from engine.tasks.running_sum import QUESTION

TURNS = (1, 2, 3, 4, 6)
REACTION = "Reaction to a question"
FACTS = {REACTION: {"x": "numbers read in a turn", "y": "to the first token (passes)"}}
PROBLEMS = 12


def curves(config: StreamsConfig, mind: Mind, words: StreamWords) -> dict[str, np.ndarray]:
    """Blobs by name for the view of curves, with 95% intervals over questions."""
    side = _point(config, mind, words, "side by side", 1)
    turns = [_point(config, mind, words, "in turns", turn) for turn in TURNS]
    series = {"in turns": turns, "side by side": [side for _ in TURNS]}
    return {
        f"curve/{REACTION}/{name}": np.array([TURNS, *zip(*points, strict=True)], float)
        for name, points in series.items()
    }


def _point(
    config: StreamsConfig, mind: Mind, words: StreamWords, form: str, turn: int
) -> tuple[float, float, float]:
    """Mean passes to the first token of an answer, with its interval; problems one by one."""
    changes = {"form": form, "turn": turn, "problems": PROBLEMS, "pace": config.pass_s}
    config = update(config, changes)
    passes: list[float] = []
    for problem in drawn(config):
        events: list[AnyEvent] = []
        clock = VirtualClock()
        caches = StreamCaches(mind, clock, events.append, tell=False)
        go(sessions_of(config, words, caches, [problem]), caches, clock, unheard, config.pass_s)
        rows = enumerate(problem.rows["ask"])
        asked = [row * config.pace for row, letter in rows if letter == QUESTION]
        passes += [reaction.passes for reaction in of_events(events, [asked])[0]]
    low, high = of_mean(np.array(passes or [np.nan], float)[:, None])
    return float(np.mean(passes or [np.nan])), float(low[0]), float(high[0])


def unheard(now: float) -> None:
    """Nobody says anything to a sweep."""
