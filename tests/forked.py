"""A server of processes that forks pytest's workers from one that has collected what they run.

Collecting imports the project and what it needs, twenty processor seconds that each worker would
spend for itself. xdist starts a worker as `PYTHON -u -c LINE` and talks to it by the pipes of its
input and output: this file run as that PYTHON hands the pipes to the server, whose fork reads LINE.
"""

import contextlib
import os
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence

SERVER = "import sys; from tests.forked import forks; forks(*sys.argv[1:]); LINE"
LINE = "exec(eval(sys.stdin.readline()))"  # of execnet, which xdist talks to its workers by
BEGUN = b"1"
counted: Counter[str] = Counter()  # how many of each test a fork's server had collected


@contextlib.contextmanager
def forking(chosen: Sequence[str]) -> Iterator[str]:
    """The PYTHON of workers that run what is `chosen`, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "forks")
        with _listening(place) as listens:
            line = [sys.executable, "-c", SERVER.replace("LINE", LINE), str(listens.fileno())]
            server = subprocess.Popen(
                [*line, *chosen], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                pass_fds=[listens.fileno()],
            )  # fmt: skip
        assert server.stdin is not None
        try:
            yield shlex.join([sys.executable, "-P", os.path.abspath(__file__), place])
        finally:
            server.stdin.close()  # which it waits for
            server.wait()


def _listening(place: str) -> socket.socket:
    listens = socket.socket(socket.AF_UNIX)
    listens.bind(place)
    listens.listen()
    return listens


def forks(number: str, *chosen: str) -> None:
    """Collect what is chosen and fork whenever somebody asks at socket `number`.

    Returns in forks alone, whose input and output are then those of whoever asked.
    """
    import pytest

    with socket.socket(fileno=int(number)) as listens:
        if pytest.main(["--collect-only", "-qq", "-n0", "-p", "no:cacheprovider", *chosen]):
            os._exit(0)  # half a module stays imported: workers of their own tell what is wrong
        heard = signal.signal(signal.SIGINT, signal.SIG_IGN)  # its end is that of its input
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how forks ended
        with selectors.DefaultSelector() as wakes:
            wakes.register(listens, selectors.EVENT_READ)
            wakes.register(0, selectors.EVENT_READ)
            while listens in [key.fileobj for key, _ in wakes.select()]:
                asks, _ = listens.accept()
                if os.fork() == 0:
                    break
                asks.close()
            else:
                os._exit(0)
    signal.signal(signal.SIGINT, heard)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, given, _, _ = socket.recv_fds(asks, 1, 3)
    for ours, theirs in enumerate(given):
        os.dup2(theirs, ours)
        os.close(theirs)
    sys.stdin = os.fdopen(0, closefd=False)  # without what its server may have read
    asks.send(BEGUN)
    asks.detach()  # open for as long as this process lives


def collected(names: Sequence[str]) -> None:
    """Hold what a fork collects against what its server had. Raises ValueError where a test has
    other parameters: values that came one by one, of a generator, come to nobody twice."""
    found = Counter(name.partition("[")[0] for name in names)
    if not counted:
        counted.update(found)
    elif counted != found:
        other = sorted(name for name in counted | found if counted[name] != found[name])
        raise ValueError(f"parameters that come once only; give a list: {', '.join(other)}")


def ask(place: str, line: Sequence[str]) -> None:
    """Have a fork take this process's part until it ends; without a server, run `line`."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as link:
        link.connect(place)
        socket.send_fds(link, [BEGUN], [0, 1, 2])
        if link.recv(1) == BEGUN:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)  # the pipes end with the fork
            os.dup2(nothing, 1)
            link.recv(1)
            os._exit(0)
    os.execv(sys.executable, [sys.executable, *line])


if __name__ == "__main__":
    ask(sys.argv[1], sys.argv[2:])
