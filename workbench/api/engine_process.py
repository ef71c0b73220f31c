"""The process that the engine and its API run in, started again where it ends.

It is told what to serve by one line of JSON on its standard input, and says by one line on its
standard output that it answers, or why it cannot. It ends when its input does: with whoever started
it, however that ended.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tornado.iostream import IOStream

from engine.core.errors import BadInput
from workbench.api.front import how_it_ended, socket_in

ANSWERS, KEPT = 1, 30  # descriptors: of standard output, and what stands for it later
OFTEN, WITHIN = 5, 60.0  # that many ends within so many seconds are no accident


class EngineProcess:
    """`call`: MODULE:FUNCTION of no arguments, which the process calls. `told`: what it is to
    serve, as JSON; `folder`: where its socket lies."""

    def __init__(self, call: str, told: Mapping[str, Any], folder: str) -> None:
        self.call, self.place = call, socket_in(folder)
        self.line = json.dumps({**told, "socket": self.place}) + "\n"
        self.process: asyncio.subprocess.Process | None = None
        self.ready: dict[str, Any] = {}
        self.served = False  # it has once begun to answer
        self.ends: deque[float] = deque(maxlen=OFTEN)

    async def connect(self) -> IOStream:
        if not self.ready:
            raise OSError("not ready")
        stream = IOStream(socket.socket(socket.AF_UNIX))
        await stream.connect(self.place)
        return stream

    async def start(self) -> None:
        """Raises BadInput where it cannot serve what it is told to, or ends again and again."""
        if len(self.ends) == OFTEN and self.ends[-1] - self.ends[0] < WITHIN:
            raise BadInput(f"the engine's process ended {OFTEN} times within {WITHIN:g} s")
        module, _, name = self.call.partition(":")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"from {module} import {name}; {name}()",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(ConnectionError):
            self.process.stdin.write(self.line.encode())
            await self.process.stdin.drain()
        answer = await self.process.stdout.readline()
        if not answer:
            how = how_it_ended(await self._code())
            if not self.served:
                raise BadInput(f"the engine's process ended as it began ({how})")
            self.ends.append(time.monotonic())  # killed once more: what it serves is no worse
            await self.start()
            return
        told = json.loads(answer)
        if "fault" in told:
            raise BadInput(told["fault"])
        self.ready, self.served = told, True

    async def ended(self) -> str:
        """Waits until it has ended; how it did."""
        how = how_it_ended(await self._code())
        self.ready = {}
        self.ends.append(time.monotonic())
        return how

    async def _code(self) -> int:
        assert self.process is not None
        return await self.process.wait()

    def stop(self) -> None:
        """Politely; a second time at once."""
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()

    async def close(self) -> None:
        """Make sure that nothing is left of it."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        with suppress(OSError):
            os.unlink(self.place)


def asked() -> dict[str, Any]:
    """What this process is told to serve. An interrupt is for who started it to pass on, and what
    anything prints is no answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(ANSWERS, KEPT)
    os.dup2(sys.stderr.fileno(), ANSWERS)
    found: dict[str, Any] = json.loads(sys.stdin.readline())
    with suppress(OSError):
        os.unlink(found["socket"])  # of the process before
    return found


def answer(**told: Any) -> None:
    """Say that the engine answers, or its `fault`."""
    os.write(KEPT, json.dumps(told).encode() + b"\n")


def until_left(loop: asyncio.AbstractEventLoop, told: Callable[[], None]) -> None:
    """Call `told` on a polite kill, and once whoever started this process is gone."""
    loop.add_signal_handler(signal.SIGTERM, told)
    entrance = sys.stdin.fileno()

    def look() -> None:
        if not os.read(entrance, 1 << 10):
            loop.remove_reader(entrance)
            told()

    loop.add_reader(entrance, look)
