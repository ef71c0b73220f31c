"""The loop and driver of all runs of streams: sessions, one for each problem, side by side.

Whatever can be written now is written in one forward pass; a run ends when all sessions are over.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from engine.core.clock import Clock, VirtualClock, WallClock
from engine.core.errors import BadInput
from engine.core.events import Branch
from engine.core.run import Live
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.streams.caches import Stream, StreamCaches, warm
from engine.reasoning.streams.config import StreamingConfig
from engine.reasoning.streams.session import Session
from engine.reasoning.streams.words import StreamWords, suffix
from engine.reasoning.threads.loaded_model import LoadedModel, open_model

SessionT = TypeVar("SessionT", bound=Session[Any, Any])
Begin = Callable[[Any, Any, StreamWords, StreamCaches, str], SessionT]  # config, problem, …, name


def go(
    sessions: Sequence[Session[Any, Any]], caches: StreamCaches, clock: Clock,
    poll: Callable[[float], object], lasts: float,
) -> None:  # fmt: skip
    """Pass after pass until all sessions are over; waits where there is nothing to write.

    A pass lasts `lasts` seconds on a virtual clock. `poll` is called before each.
    """
    emit, begun = caches.emit, set[Stream]()
    for session in sessions:
        for stream in session.streams:
            emit(Branch(clock.now(), stream.name, "", "queued"))
    while alive := [session for session in sessions if not session.over]:
        now = clock.now()
        poll(now)
        planned = [(session, feed) for session in alive for feed in session.feeds(now)]
        if not planned:
            clock.wait_until(min(session.due() for session in alive))
            continue
        for _, feed in planned:
            if feed.stream not in begun:
                begun.add(feed.stream)
                emit(Branch(now, feed.stream.name, "", "running"))
        logits_RV = caches.write([feed for _, feed in planned], lasts)
        now = caches.ended
        for (session, feed), logits_V in zip(planned, logits_RV, strict=True):
            session.take(feed, logits_V, now)
        for session in alive:
            if session.over:
                for stream in session.streams:
                    caches.close(stream)
                    emit(Branch(clock.now(), stream.name, "", "finished", "all is answered"))


def open_streams(config: StreamingConfig) -> tuple[LoadedModel, StreamWords]:
    """The model and the words of its streams. Raises BadInput."""
    loaded = open_model(config.reasoning())
    if not isinstance(loaded.tokenizer, Tokenizer):
        raise BadInput(f"model {loaded.name}: has no tokenizer; give one of streams")
    return loaded, StreamWords(loaded.tokenizer.rules, config.letters)


def sessions_of(
    config: StreamingConfig, begin: Begin[SessionT], words: StreamWords, caches: StreamCaches,
    problems: Sequence[Any],
) -> list[SessionT]:  # fmt: skip
    """A session for each problem, over the same pages."""
    return [
        begin(config, problem, words, caches, suffix(place, len(problems)))
        for place, problem in enumerate(problems)
    ]


def drive(
    config: StreamingConfig, live: Live, begin: Begin[SessionT],
    facts: Callable[[Sequence[SessionT]], dict[str, Any]], tell: bool = True,
) -> Sequence[SessionT]:  # fmt: skip
    """A run of the config's problems: its sessions, all over. `facts` go into the log's header.

    What sessions have kept lies beside the log where the config asks for logits.
    `tell`: who sees which stream from where is emitted with each pass, not by the sessions.
    """
    live.report("opening the model", 0, 0)
    loaded, words = open_streams(config)
    warm(loaded)
    clock: Clock = VirtualClock() if config.virtual else WallClock()
    caches = StreamCaches(loaded, clock, live.emit, tell)
    sessions = sessions_of(config, begin, words, caches, config.drawn())
    live.open(
        config,
        clock,
        pages=loaded.storage.kv.pages,
        page_size=config.page_size,
        **loaded.header(config.page_size),
        threads=[stream.name for stream in caches.streams],
        **facts(sessions),
    )
    go(sessions, caches, clock, live.poll, config.pass_s)
    for place, session in enumerate(sessions if config.keep_logits else ()):
        for name, array in session.kept().items():
            live.keep(clock.now(), f"kept/{place}/{name}", array)
    return sessions
