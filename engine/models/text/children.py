"""Warm child processes for a stranger's programs (templates, schemas), limited in time and memory.

What such a program costs must not be the server's.
"""

import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import limits, over
from engine.models.text.confined import read, write

CHILDREN = 2
PATIENCE = 30.0  # seconds by the wall, on a busy machine, before a process is given up

Child = subprocess.Popen[bytes]


class Children:
    """Asked from any thread, so much at once as there are processes. Close it when done.

    `module` runs in them; `what` (chat template, schema) names in errors what is theirs to work on,
    and its last word the limits: `template_seconds` of processor time, `template_memory`.
    `opening`: what each is told first, before it is confined.
    """

    def __init__(self, module: str, what: str, opening: Any = None) -> None:
        self.module, self.what, self.opening = module, what, opening
        self.kind = what.split()[-1]
        self._free: queue.LifoQueue[Child | None] = queue.LifoQueue()
        self._closed = False
        for place in range(CHILDREN):
            self._free.put(self._start() if place == CHILDREN - 1 else None)

    def ask(self, **asked: Any) -> str:
        """What a child makes of `asked`. Raises BadInput where it refuses, or is over a limit."""
        if self._closed:
            raise BadInput(f"{self.what}: the server has been closed")
        child = self._free.get()
        try:
            if child is None or child.poll() is not None:  # none yet, or ended by somebody else
                child = self._start()
            answer = self._answer(child, asked)
        finally:
            if child is not None and (child.poll() is not None or self._closed):
                end(child)
                child = None if self._closed else self._start()
            self._free.put(child)
        if "text" in answer:
            return str(answer["text"])
        raise BadInput(str(answer["refused"]))

    def close(self) -> None:
        """End the processes, those at work too."""
        self._closed = True
        for _ in range(CHILDREN):
            try:
                child = self._free.get_nowait()
            except queue.Empty:
                return
            if child is not None:
                end(child)
            self._free.put(None)

    def _start(self) -> Child:
        memory = str(getattr(limits(), f"{self.kind}_memory"))
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            [sys.executable, "-m", self.module, memory],
            stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if self.opening is not None:
            assert child.stdin is not None
            with suppress(OSError):  # it ended at once: whoever asks it hears so
                write(child.stdin, self.opening)
        return child

    def _answer(self, child: Child, asked: dict[str, Any]) -> dict[str, str]:
        """The child's; one that ends under it was over its time, or out of memory for good."""
        seconds = getattr(limits(), f"{self.kind}_seconds")
        assert child.stdin is not None and child.stdout is not None
        guard = threading.Timer(PATIENCE, child.kill)
        guard.daemon = True
        guard.start()
        try:
            write(child.stdin, {**asked, "seconds": seconds})
            answer = read(child.stdout)
        except (OSError, ValueError):
            answer = None
        finally:
            guard.cancel()
        if answer is None:
            child.kill()
            if child.wait() == -getattr(signal, "SIGPROF", 0):
                raise over(self.what, "takes more processor time", f"{self.kind}_seconds")
            raise over(self.what, "asks for more memory", f"{self.kind}_memory")
        return dict(answer)


def end(child: Child) -> None:
    """End a process and close what leads to it."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not yet written has nobody to go to
                stream.close()
