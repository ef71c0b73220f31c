"""The driver of several streams: inputs go on while outputs are written, side by side or in turns.

In come a config and problems; out come tokens of every stream, reactions and answers.
"""

from collections.abc import Sequence

import numpy as np

from engine.core.clock import Clock, VirtualClock, WallClock
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Live
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.streams.caches import StreamCaches, warm
from engine.reasoning.streams.config import StreamsConfig
from engine.reasoning.streams.loop import go
from engine.reasoning.streams.sessions import drawn, sessions_of
from engine.reasoning.streams.side_by_side import SideBySide
from engine.reasoning.streams.turn_taking import TurnTaking
from engine.reasoning.streams.words import StreamWords
from engine.reasoning.threads.loaded_model import LoadedModel, open_model
from engine.tasks.running_sum import LETTERS, QUESTION


def run(config: StreamsConfig, live: Live) -> None:
    """Let all streams go on until every question is answered."""
    live.report("opening the model", 0, 0)
    loaded, words = open_streams(config)
    warm(loaded)
    clock: Clock = VirtualClock() if config.virtual else WallClock()
    caches = StreamCaches(loaded, clock, live.emit)
    sessions = sessions_of(config, words, caches, drawn(config))
    asked = [
        [row * config.pace for row, one in enumerate(s.problem.rows["ask"]) if one == QUESTION]
        for s in sessions
    ]
    live.open(
        config,
        clock,
        pages=loaded.storage.kv.pages,
        page_size=config.page_size,
        **loaded.header(config.page_size),
        threads=[stream.name for stream in caches.streams],
        asked_s=asked,
    )
    go(sessions, caches, clock, live.poll, config.pass_s)
    finish(sessions, live, clock.now())


def open_streams(config: StreamsConfig) -> tuple[LoadedModel, StreamWords]:
    """The model and the words of its streams. Raises BadInput."""
    loaded = open_model(config.reasoning())
    if not isinstance(loaded.tokenizer, Tokenizer):
        raise BadInput(f"model {loaded.name}: has no tokenizer; give one of streams")
    return loaded, StreamWords(loaded.tokenizer.rules, LETTERS)


def finish(sessions: Sequence[SideBySide | TurnTaking], live: Live, now: float) -> None:
    """Say what was answered; keep logits of streams side by side where the config asks for it."""
    for place, session in enumerate(sessions):
        said = session.answers()
        lane, text = session.streams[-1].name, " ".join(answer for _, answer in said)
        right = sum(wanted == answer for wanted, answer in said)
        live.emit(Mark(now, lane, "answer", text or "none"))
        live.emit(Mark(now, lane, "verdict", f"{right} of {len(said)} right"))
        if isinstance(session, SideBySide) and session.logits:
            rows = {name: session.said[name] for name in session.said}
            tokens_RS = np.array(
                [session.words.encode(name, text) for name, text in rows.items()]
            ).T
            arrays = {"tokens": tokens_RS, "logits": np.array(session.logits)}
            for name, array in arrays.items():
                live.keep(now, f"kept/{place}/{name}", array)
