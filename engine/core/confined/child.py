"""Confined process, the child's side: little memory, little time, nothing to write, one pipe in.

In on stdin and out on stdout: a length of four bytes, then JSON. Work over its time is ended by a
signal that reaches into any call, Python's own or a library's; `children` starts another process.
Where a program of a stranger's making is run, the process is `isolated` as well.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

PREFIX = 4
OURS = ("engine", "tests", "ctypes", "_ctypes")  # modules that an isolated process forgets
FILES = 16  # open at once
LONGEST = 32 << 20  # bytes of a message


def serve(
    memory: int, answer: Callable[[dict[str, Any]], dict[str, str]], isolated: bool = False
) -> None:
    """Answer what is asked until the other side has gone; each within its `seconds`, with its
    `token`, by which the other side knows whose answer it is.

    Isolated, it answers first of all which `layers` are in force: see `isolate`.
    """
    confine(memory)
    if isolated:
        write(sys.stdout.buffer, isolate())
    while (asked := read(sys.stdin.buffer)) is not None:
        timer(asked["seconds"])
        try:
            made = answer(asked)
        finally:
            timer(0.0)
        write(sys.stdout.buffer, {**made, "token": asked["token"]})


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


def isolate() -> list[str]:
    """Take all ways out from this process, for good; which layers the system has, by name.

    `limits`: no process, no file. `namespaces`: a network, users and mounts of its own, and this
    folder as its root. `calls`: a filter of system calls that leaves memory and the two pipes. No
    module can be imported any more, and none of ours stays.
    """
    from engine.core.confined import system_calls

    layers = []
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        layers.append("limits")
    with suppress(OSError, AttributeError):
        system_calls.leave_namespaces()
        os.chroot(".")
        layers.append("namespaces")
    with suppress(OSError, AttributeError):
        system_calls.filter_calls()
        layers.append("calls")
    for path in (sys.path, sys.meta_path, sys.path_hooks):
        path.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    return layers


def timer(seconds: float) -> None:
    """End this process after so much processor time; 0: do not."""
    if hasattr(signal, "ITIMER_PROF"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def read(stream: IO[bytes]) -> Any:
    """The next message; None where the other side has gone. Raises ValueError for none of ours."""
    prefix = stream.read(PREFIX)
    if len(prefix) < PREFIX:
        return None
    length = int.from_bytes(prefix, "little")
    if length > LONGEST:
        raise ValueError(f"a message of {length} bytes")
    return json.loads(stream.read(length))


def write(stream: IO[bytes], message: Any) -> None:
    body = json.dumps(message).encode()
    stream.write(len(body).to_bytes(PREFIX, "little") + body)
    stream.flush()
