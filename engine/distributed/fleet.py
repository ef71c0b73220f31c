"""Process pool for independent work, each piece in a process of its own: a failure is one result.

Work is named as `module:function`, its input and output are plain JSON values, so the same pieces
can be run here or on other machines.
"""

import importlib
import json
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from engine.core.errors import BadInput
from engine.distributed.launch import server

TICK = 0.1  # seconds
GRACE = 2.0  # seconds within which the exit code of a dead process is there


@dataclass(frozen=True, slots=True)
class Done:
    """What became of piece `number`: its `value`, or one line of why there is none."""

    number: int
    value: Any = None
    failed: str = ""


class Fleet(ABC):
    """Somewhere to run pieces."""

    @abstractmethod
    def run(self, work: str, pieces: Sequence[Any]) -> Iterator[Done]:
        """Each piece's result as it comes; `work` names a function of one JSON value."""


def called(work: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, _, name = work.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def answer(work: str, piece: str) -> str:
    """Do a piece given as JSON; the result as JSON, failures too."""
    try:
        return json.dumps({"value": called(work)(json.loads(piece))})
    except BadInput as fault:
        return json.dumps({"failed": str(fault)})
    except Exception as fault:
        # Whatever it was, the other pieces go on and this one says why it did not.
        return json.dumps({"failed": f"{type(fault).__name__}: {fault}".splitlines()[0]})


def done(number: int, text: str) -> Done:
    """What `answer` gave for a piece."""
    said = json.loads(text)
    return Done(number, said.get("value"), said.get("failed", ""))


class Processes(Fleet):
    """Processes of this machine, `jobs` at a time. `limit`: seconds for each piece.

    Once `stop` is set no piece goes on: those under way are ended.
    """

    def __init__(
        self, jobs: int = 1, limit: float = 600.0, stop: threading.Event | None = None
    ) -> None:
        if jobs < 1:
            raise BadInput(f"jobs {jobs}: at least one")
        self.jobs, self.limit, self.stop = jobs, limit, stop or threading.Event()

    def run(self, work: str, pieces: Sequence[Any]) -> Iterator[Done]:
        context = server(work.partition(":")[0])
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        waiting = list(enumerate(json.dumps(piece) for piece in pieces))
        busy: dict[Any, _Busy] = {}
        try:
            while (waiting or busy) and not self.stop.is_set():
                while waiting and len(busy) < self.jobs:
                    number, piece = waiting.pop(0)
                    ours, theirs = context.Pipe(duplex=False)
                    # No daemon: a piece may have ranks of its own.
                    process = context.Process(  # type: ignore[attr-defined]
                        target=_piece, args=(work, piece, threads, theirs), daemon=False
                    )
                    process.start()
                    theirs.close()
                    busy[ours] = _Busy(number, process, time.monotonic() + self.limit)
                yield from self._ended(busy)
        finally:
            for pipe, each in busy.items():
                each.end(pipe)

    def _ended(self, busy: dict[Any, "_Busy"]) -> Iterator[Done]:
        for pipe in wait(list(busy), TICK):
            each = busy.pop(pipe)
            yield each.result(pipe)  # type: ignore[arg-type]
        for pipe in [p for p, each in busy.items() if time.monotonic() > each.until]:
            each = busy.pop(pipe)
            each.end(pipe)
            told = f"no result within {self.limit:g} s; ended (raise the limit if that was work)"
            yield Done(each.number, failed=told)


@dataclass(frozen=True, slots=True)
class _Busy:
    """A piece under way."""

    number: int
    process: BaseProcess
    until: float

    def result(self, pipe: Connection) -> Done:
        try:
            text = pipe.recv_bytes().decode()
        except (EOFError, OSError):
            self.process.join(GRACE)
            code = self.process.exitcode
            self.end(pipe)
            return Done(self.number, failed=f"its process ended with exit code {code}")
        self.process.join(GRACE)
        self.end(pipe)
        return done(self.number, text)

    def end(self, pipe: Connection) -> None:
        self.process.kill()
        self.process.join()
        pipe.close()


def _piece(work: str, piece: str, threads: int, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    pipe.send_bytes(answer(work, piece).encode())
    pipe.close()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
