"""The driver of thinking while reading: inputs arrive, are read and thought about in one batch.

In come a config and problems; out come tokens of both streams, arrivals, answers and waits.
"""

from collections.abc import Sequence

import numpy as np

from engine.core.clock import Clock, VirtualClock, WallClock
from engine.core.run import Live
from engine.reasoning.streaming_thinking.config import ReadingConfig
from engine.reasoning.streaming_thinking.reader import Reader
from engine.reasoning.streaming_thinking.readers import drawn, open_reader, readers_of
from engine.reasoning.streams.caches import warm
from engine.reasoning.streams.loop import go


def run(config: ReadingConfig, live: Live) -> None:
    """Read and think until every problem has its answer."""
    live.report("opening the model", 0, 0)
    loaded, words = open_reader(config)
    warm(loaded)
    clock: Clock = VirtualClock() if config.virtual else WallClock()
    problems = drawn(config)
    readers = readers_of(config, loaded, words, clock, live.emit, problems)
    live.open(
        config,
        clock,
        pages=loaded.storage.kv.pages,
        page_size=config.page_size,
        **loaded.header(config.page_size),
        threads=[stream.name for stream in readers[0].caches.streams],
        whole_s=[(len(reader.input) - 1) * config.pace for reader in readers],
    )
    go(readers, readers[0].caches, clock, live.poll, config.pass_s)
    if config.keep_logits:
        keep(readers, live, clock.now())


def keep(readers: Sequence[Reader], live: Live, now: float) -> None:
    """Of each problem: what was read and said, what each thought saw, and its logits."""
    for place, reader in enumerate(readers):
        arrays = {
            "read": np.array(reader.input),
            "think": np.array(reader.said[:-1]),
            "upto": np.array(reader.upto),
            "logits": np.array(reader.logits),
        }
        for name, array in arrays.items():
            live.keep(now, f"kept/{place}/{name}", array)
