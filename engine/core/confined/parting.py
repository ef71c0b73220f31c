"""Parting: a rank's process is killed by the kernel once whoever launched it has gone.

It sees to that itself, but not while it is stopped. Its parent is the server of processes, which
ends once nobody holds the pipe that the launcher opened; each process that it makes holds it too.
"""

import ctypes
import os
import signal
import sys
from multiprocessing import forkserver

ON_PARENTS_DEATH = 1  # of prctl


def end_with_launcher() -> None:
    """For a process that the server of processes made; elsewhere it does nothing."""
    server = getattr(forkserver, "_forkserver", None)
    held = getattr(server, "_forkserver_alive_fd", None)
    if sys.platform != "linux" or held is None:
        return
    ctypes.CDLL(None).prctl(ON_PARENTS_DEATH, signal.SIGKILL, 0, 0, 0)
    server._forkserver_alive_fd = None  # type: ignore[union-attr]
    os.close(held)
