"""The process in which chat templates are rendered: little memory, little time, nothing to write.

In on stdin and out on stdout: a length of four bytes, then JSON. A template over its time is ended
by a signal that reaches into any call of Python's own; the parent starts another process.
"""

import json
import signal
import sys
from functools import lru_cache
from typing import IO, Any

from engine.core.errors import BadInput
from engine.models.text.chat import Template

PREFIX = 4
FILES = 16  # open at once


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


@lru_cache(maxsize=8)
def template(text: str) -> Template:
    return Template(text)


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """The text, or why there is none."""
    _timer(asked["seconds"])
    try:
        made = template(asked["template"]).render(asked["messages"], **asked["values"])
        return {"text": made}
    except BadInput as fault:
        return {"refused": str(fault)}
    finally:
        _timer(0.0)


def _timer(seconds: float) -> None:
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


def main(memory: int) -> None:
    template("warm")
    confine(memory)
    while (asked := read(sys.stdin.buffer)) is not None:
        write(sys.stdout.buffer, answer(asked))


if __name__ == "__main__":
    main(int(sys.argv[1]))
