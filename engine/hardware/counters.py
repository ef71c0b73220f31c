"""Hardware counters of the processor, where the system lends them: misses of its caches.

Linux only, through `perf_event_open`; without them `counters` says why not, in a line. What counts
as a miss is the processor's affair: lines that were prefetched mostly do not.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

CALLS = {"x86_64": 298, "aarch64": 241}  # number of perf_event_open
HARDWARE, CACHE_MISSES = 0, 3  # perf_type_id, perf_hw_id: see linux/perf_event.h
USER_ONLY = (1 << 5) | (1 << 6)  # exclude_kernel, exclude_hv


class Counters:
    """Counts cache misses of all threads this process has when it is made."""

    def __init__(self, files: list[int]) -> None:
        self.files = files

    def misses(self) -> int:
        """Misses since it was made."""
        return sum(_read(file) for file in self.files)

    def close(self) -> None:
        """Give the counters back."""
        for file in self.files:
            os.close(file)
        self.files = []


def counters() -> tuple[Counters | None, str]:
    """The counters, or None and why there are none here."""
    number = CALLS.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        return None, f"hardware counters: not on {platform.system()} {platform.machine()}"
    files: list[int] = []
    for thread in sorted(int(task.name) for task in Path("/proc/self/task").iterdir()):
        file, why = _open(number, thread)
        if why:
            Counters(files).close()
            return None, f"hardware counters: none on this machine{why.rstrip()}"
        files.append(file)
    return Counters(files), ""


def _open(number: int, thread: int) -> tuple[int, str]:
    """A file that counts one thread's misses, or in brackets why not; " " where there are none."""
    room = struct.pack("IIQQQQQ", HARDWARE, 64, CACHE_MISSES, 0, 0, 0, USER_ONLY).ljust(64, b"\0")
    attributes = ctypes.create_string_buffer(room, 64)
    libc = ctypes.CDLL(None, use_errno=True)
    file = int(libc.syscall(number, attributes, thread, -1, -1, 0))
    if file >= 0:
        return file, ""
    number = ctypes.get_errno()
    return file, " " if number == errno.ENOENT else f" ({os.strerror(number)})"


def _read(file: int) -> int:
    """The count; 0 where the thread was never counted."""
    return int(struct.unpack("Q", os.read(file, 8))[0])
