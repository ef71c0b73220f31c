"""Chat templates rendered in warm processes of their own, with limits of time and memory.

A template is a program of a stranger; what it costs must not be the server's. The limits are
`template_seconds` (of processor time) and `template_memory` of `engine.core.limits`.
"""

import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import limits, over
from engine.models.text.render_child import read, write

CHILDREN = 2
PATIENCE = 30.0  # seconds by the wall, on a busy machine, before a process is given up


class Renderer:
    """Renders from any thread, so many at once as there are processes. Close it when done."""

    def __init__(self) -> None:
        self._free: queue.LifoQueue[subprocess.Popen[bytes] | None] = queue.LifoQueue()
        self._closed = False
        for place in range(CHILDREN):
            self._free.put(_start() if place == CHILDREN - 1 else None)

    def render(self, template: str, messages: list[dict[str, Any]], **values: Any) -> str:
        """The prompt for `messages`. Raises BadInput as `engine.models.text.chat.render` does, and
        for a template that takes more time or memory than it may."""
        if self._closed:
            raise BadInput("chat template: the server has been closed")
        child = self._free.get()
        if child is None or child.poll() is not None:  # none yet, or ended by somebody else
            child = _start()
        try:
            answer = _ask(child, template, messages, values)
        finally:
            if child.poll() is not None or self._closed:
                end(child)
                child = None if self._closed else _start()
            self._free.put(child)
        if "text" in answer:
            return str(answer["text"])
        raise BadInput(str(answer["refused"]))

    def close(self) -> None:
        """End the processes."""
        self._closed = True
        for _ in range(CHILDREN):
            try:
                child = self._free.get_nowait()
            except queue.Empty:
                return
            if child is not None:
                end(child)
            self._free.put(None)


def _start() -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "engine.models.text.render_child"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*words, str(limits().template_memory)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    )


def _ask(
    child: subprocess.Popen[bytes],
    template: str,
    messages: list[dict[str, Any]],
    values: dict[str, Any],
) -> dict[str, str]:
    """The child's answer; one that ends under it was over its time, or out of memory for good."""
    seconds = limits().template_seconds
    asked = {"template": template, "messages": messages, "values": values, "seconds": seconds}
    assert child.stdin is not None and child.stdout is not None
    guard = threading.Timer(PATIENCE, child.kill)
    guard.daemon = True
    guard.start()
    try:
        write(child.stdin, asked)
        answer = read(child.stdout)
    except (OSError, ValueError):
        answer = None
    finally:
        guard.cancel()
    if answer is None:
        child.kill()
        if child.wait() == -getattr(signal, "SIGPROF", 0):
            raise over("chat template", "takes more processor time", "template_seconds")
        raise over("chat template", "asks for more memory", "template_memory")
    return dict(answer)


def end(child: subprocess.Popen[bytes]) -> None:
    """End a process and close what leads to it."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
