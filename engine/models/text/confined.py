"""Confined process, the child's side: little memory, little time, nothing to write, one pipe in.

In on stdin and out on stdout: a length of four bytes, then JSON. Work over its time is ended by a
signal that reaches into any call, Python's own or a library's; `children` starts another process.
"""

import json
import signal
import sys
from collections.abc import Callable
from typing import IO, Any

PREFIX = 4
FILES = 16  # open at once


def serve(memory: int, answer: Callable[[dict[str, Any]], dict[str, str]]) -> None:
    """Answer what is asked until the other side has gone; each within its `seconds`."""
    confine(memory)
    while (asked := read(sys.stdin.buffer)) is not None:
        timer(asked["seconds"])
        try:
            made = answer(asked)
        finally:
            timer(0.0)
        write(sys.stdout.buffer, made)


def confine(memory: int) -> None:
    """Take `memory` bytes more at most, write no file; where the system knows such limits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    try:
        import resource

        with open("/proc/self/statm") as sizes:
            used = int(sizes.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # no such limits here
        return
    for kind, most in (
        (resource.RLIMIT_AS, used + memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, FILES),
    ):
        resource.setrlimit(kind, (most, most))


def timer(seconds: float) -> None:
    """End this process after so much processor time; 0: do not."""
    if hasattr(signal, "ITIMER_PROF"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def read(stream: IO[bytes]) -> Any:
    """The next message; None where the other side has gone."""
    prefix = stream.read(PREFIX)
    if len(prefix) < PREFIX:
        return None
    body = stream.read(int.from_bytes(prefix, "little"))
    return json.loads(body)


def write(stream: IO[bytes], message: Any) -> None:
    body = json.dumps(message).encode()
    stream.write(len(body).to_bytes(PREFIX, "little") + body)
    stream.flush()
