"""Warm child processes for a stranger's programs (templates, schemas), limited in time and memory.

What such a program costs must not be the server's, and where the program is code that does
anything at all, it must find no way out: its process is isolated.
"""

import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.core.confined.child import read, write
from engine.core.errors import BadInput
from engine.core.limits import limits, over

CHILDREN = 2
PATIENCE = 30.0  # seconds by the wall, on a busy machine, before a process is given up

# Isolated, Python takes nothing from its environment, its folder or what is installed.
BEGIN = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)
ROOT = Path(__file__).parents[3]  # where the packages lie

Child = subprocess.Popen[bytes]


class Free(queue.LifoQueue["Child | None"]):
    """Children that nobody asks now. One that has answered goes first, one that has only been
    started last: whoever asks next does not wait for its imports because another's program was
    over its limits."""

    def put_last(self, child: Child | None) -> None:
        """Put one behind all others."""
        with self.mutex:
            self.queue.insert(0, child)
            self.not_empty.notify()

    def unstarted(self) -> int:
        """Take out those that have not been started; how many there were."""
        with self.mutex:
            count = len(self.queue)
            self.queue[:] = [child for child in self.queue if child is not None]
            return count - len(self.queue)


class Children:
    """Asked from any thread, so much at once as there are processes. Close it when done.

    `module` runs in them; `what` (chat template, schema) names in errors what is theirs to work on,
    and its last word the limits: `template_seconds` of processor time, `template_memory`.
    `opening`: what each is told first, before it is confined. `isolated`: they have no environment,
    begin in an empty folder, and give up all ways out before they answer anything; `layers` says
    which of them this system has (`confined.child.isolate`).
    """

    def __init__(self, module: str, what: str, opening: Any = None, isolated: bool = False) -> None:
        self.module, self.what, self.opening = module, what, opening
        self.isolated = isolated
        self.layers: list[str] = []
        self.kind = what.split()[-1]
        self._free = Free()
        self._closed = False
        for place in range(CHILDREN):
            self._free.put(self._start() if place == CHILDREN - 1 else None)

    def ask(self, times: int = 1, **asked: Any) -> str:
        """What a child makes of `asked`. Raises BadInput where it refuses, or is over a limit;
        `times`: that of time so often."""
        if self._closed:
            raise BadInput(f"{self.what}: the server has been closed")
        child = self._free.get()
        try:
            if child is None or child.poll() is not None:  # none yet, or ended by somebody else
                child = self._start()
            answer = self._answer(child, asked, times)
            if answer is None:  # of something asked before, which wrote more than its own answer,
                # or none: it was stopped, as this server may have been meanwhile
                end(child)
                child = self._start()
                answer = self._answer(child, asked, times)
        finally:
            if child is not None and (child.poll() is not None or self._closed):
                end(child)
                for _ in range(1 + self._free.unstarted()):  # from now on one stands ready
                    self._free.put_last(None if self._closed else self._start())
            else:
                self._free.put(child)
        if answer is None:
            raise BadInput(
                f"{self.what}: no answer within {times * PATIENCE:g} s, or one that is none"
            )
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
            self._free.put_last(None)  # not first: it would be taken again in place of a process

    def _start(self) -> Child:
        memory = str(getattr(limits(), f"{self.kind}_memory"))
        if self.isolated:
            return self._isolated(memory)
        child = _opened([sys.executable, "-m", self.module, memory])
        if self.opening is not None:
            assert child.stdin is not None
            with suppress(OSError):  # it ended at once: whoever asks it hears so
                write(child.stdin, self.opening)
        return child

    def _isolated(self, memory: str) -> Child:
        """A child in a folder that is gone once it is there: nothing can be put into it."""
        begin = [sys.executable, "-I", "-S", "-c", BEGIN, str(ROOT), self.module, memory]
        with tempfile.TemporaryDirectory() as empty:
            child = _opened(begin, cwd=empty, env={}, start_new_session=True)
            assert child.stdout is not None
            layers = read(child.stdout)
        self.layers = [str(layer) for layer in layers or []]
        return child

    def _answer(self, child: Child, asked: dict[str, Any], times: int) -> dict[str, str] | None:
        """The child's; one that ends under it was over its time, or out of memory for good. None
        where what comes back answers something else, or nothing does: that child has been ended."""
        seconds, token = times * getattr(limits(), f"{self.kind}_seconds"), secrets.token_hex(8)
        assert child.stdin is not None and child.stdout is not None
        given_up = threading.Event()

        def give_up() -> None:
            given_up.set()
            child.kill()

        guard = threading.Timer(times * PATIENCE, give_up)
        guard.daemon = True
        guard.start()
        answer, other = None, False
        if hasattr(signal, "SIGCONT"):  # somebody may have stopped it
            child.send_signal(signal.SIGCONT)
        try:
            write(child.stdin, {**asked, "seconds": seconds, "token": token})
            answer = read(child.stdout)
            other = answer is not None and not (
                isinstance(answer, dict) and answer.get("token") == token
            )
        except ValueError:
            other = True
        except OSError:
            pass
        finally:
            guard.cancel()
        if other or answer is None:
            child.kill()
            how = child.wait()
            if given_up.is_set() and self.isolated:  # code that waits for nothing
                raise BadInput(f"{self.what}: no answer within {times * PATIENCE:g} s")
            if other or given_up.is_set():
                return None
            if how == -getattr(signal, "SIGPROF", 0):
                raise over(self.what, "takes more processor time", f"{self.kind}_seconds")
            raise over(self.what, "asks for more memory", f"{self.kind}_memory")
        return dict(answer)


def _opened(command: list[str], **more: Any) -> Child:
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, **more)


def end(child: Child) -> None:
    """End a process and close what leads to it."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not yet written has nobody to go to
                stream.close()
