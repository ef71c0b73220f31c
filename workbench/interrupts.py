"""Interrupts (Ctrl-C), put off where an import would fall over them, and sent once more where one
swallows them.

Modules in C do so (the random numbers of numpy, yaml), and the command would go on as if nobody had
asked. Where they are set up they end the whole process (torch's c10d), and where the import system
tidies its locks it prints a traceback.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

AGAIN = 0.1  # seconds of processor time after which one that fell into an import is repeated
SOON, LONGEST = 0.01, 0.3  # the same, after which one is that was put off; put off no longer
IMPORTS = "<frozen importlib._bootstrap>"


@contextmanager
def heard() -> Iterator[None]:
    """What is inside is interrupted, once more if the first is swallowed; who listens to Ctrl-C in
    a way of their own, as notebooks and servers do, goes on so."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = _Interrupt()
    before, others = signal.signal(signal.SIGVTALRM, interrupt), sys.unraisablehook

    def swallowed(fault: "sys.UnraisableHookArgs") -> None:
        """Callbacks from C (compilers'), finalisers and collections swallow what is raised."""
        if isinstance(fault.exc_value, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_VIRTUAL, SOON)
        else:
            others(fault)

    sys.unraisablehook = swallowed
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except ImportError:  # numpy tells an import that was interrupted as one that cannot be
        if interrupt.since is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        taken()
        sys.unraisablehook = others
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGVTALRM, before)


def taken() -> None:
    """The interrupt has come to whom it was meant for: it is not repeated."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def end_server() -> None:
    """End the process that ranks and pieces come from. It is no child that Python tells of, and
    looks whether anybody is left only once it has loaded what they need: for many seconds where
    others are busy."""
    forkserver = sys.modules.get("multiprocessing.forkserver")
    number = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    if number is not None:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


class _Interrupt:
    """What a signal calls: raises KeyboardInterrupt, now or a little later."""

    def __init__(self) -> None:
        self.since: float | None = None  # processor time at which one was put off

    def __call__(self, number: int, frame: FrameType | None) -> None:
        here, now = frame, time.process_time()
        while frame is not None:
            if frame.f_code.co_filename == IMPORTS:
                # Ctrl-C once more is not put off: what waits takes no processor time.
                asked_again = self.since is not None and number == signal.SIGINT
                self.since = now if self.since is None else self.since
                if _sets_up(here) and not asked_again and now - self.since < LONGEST:
                    signal.setitimer(signal.ITIMER_VIRTUAL, SOON)
                    return
                signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN)
                break
            frame = frame.f_back
        raise KeyboardInterrupt


def _sets_up(frame: FrameType | None) -> bool:
    """Whether C may be at work for an import: called by the import system or a module's body."""
    code = frame and frame.f_code
    return code is not None and (code.co_filename == IMPORTS or code.co_name == "<module>")
