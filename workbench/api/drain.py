"""Drains a stopping server: nothing new comes in, open answers may end, the rest end as errors."""

import asyncio
import signal
from collections.abc import Callable

from workbench.live.live import LiveEngine

GRACE = 10.0  # seconds that running answers have to finish
LAST = 1.0  # seconds in which the errors of those that have not must be sent
LOOK = 0.02  # seconds between looks
SIGNALS = (signal.SIGINT, signal.SIGTERM)
Watch = Callable[[asyncio.AbstractEventLoop, Callable[[], None]], None]  # calls the second to stop


def on_signals(loop: asyncio.AbstractEventLoop, told: Callable[[], object]) -> None:
    """Call `told` on Ctrl-C or a polite kill, where this system and thread can be told so."""
    for kind in SIGNALS:
        try:
            loop.add_signal_handler(kind, told)
        except (NotImplementedError, RuntimeError, ValueError):
            return


class Stopping:
    """Counts what asks a server to stop: the first time politely, the second time at once."""

    def __init__(self) -> None:
        self.asked, self.at_once = asyncio.Event(), asyncio.Event()

    def told(self) -> None:
        (self.at_once if self.asked.is_set() else self.asked).set()

    async def drain(self, live: LiveEngine, grace: float = GRACE) -> None:
        """Let open answers finish for `grace` seconds, then end the engine and the rest."""
        live.drain()
        clock = asyncio.get_running_loop().time
        until = clock() + grace
        while live.busy and clock() < until and not self.at_once.is_set():
            await asyncio.sleep(LOOK)
        live.close()
        until = clock() + LAST
        while live.busy and clock() < until:
            await asyncio.sleep(LOOK)
