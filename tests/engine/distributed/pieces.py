"""What fleets run in the tests: functions of one JSON value."""

import os
import signal
import time
from typing import Any

from engine.core.errors import BadInput


def square(given: Any) -> Any:
    """The square; or what the text asks for."""
    if given == "raise":
        raise ValueError("no such thing\nand more")
    if given == "refuse":
        raise BadInput("that cannot be")
    if given == "interrupt":  # as a terminal sends it to every process of a command
        os.kill(os.getpid(), signal.SIGINT)
        given = 6
    if given == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if given == "hang":
        time.sleep(600)
    return {"square": given * given, "pid": os.getpid()}
