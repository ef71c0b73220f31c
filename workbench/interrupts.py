"""Interrupts (Ctrl-C), sent once more where an import swallows them.

Modules in C do so (the random numbers of numpy, yaml), and the command would go on as if nobody
had asked.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

AGAIN = 0.1  # seconds of processor time after which one that fell into an import is repeated
IMPORTS = "<frozen importlib._bootstrap>"


@contextmanager
def heard() -> Iterator[None]:
    """What is inside is interrupted, once more if the first is swallowed; who listens to Ctrl-C in
    a way of their own, as notebooks and servers do, goes on so."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        taken()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGVTALRM, before)


def taken() -> None:
    """The interrupt has come to whom it was meant for: it is not repeated."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTS:
            signal.setitimer(signal.ITIMER_VIRTUAL, AGAIN)
            break
        frame = frame.f_back
    raise KeyboardInterrupt
