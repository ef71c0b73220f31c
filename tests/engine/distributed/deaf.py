"""Sockets that went half open: what is sent to them vanishes, and nobody is told of it.

A filter of the kernel drops every segment that comes in, acknowledgements and ends as well, as a
switch does that lost its power.
"""

import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal

Ends = Literal["accepted", "called", "both"]
ATTACH_FILTER = 26  # of Linux's sockets
WAITS = 500  # of a hundredth of a second
NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)  # BPF: of each packet, keep no byte


def descriptors() -> dict[str, int]:
    """This process's open ones, by what they are of: a number is given again once it is free."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that this list was read by has been closed
            found[os.readlink(f"/proc/self/fd/{number}")] = int(number)
    return found


def deafen(since: dict[str, int], but: int, ends: Ends) -> int:
    """What was connected after the descriptors `since` were looked at hears nothing more, unless
    an end of it is at port `but`; how many ends that are. `ends`: which of a connection."""
    count = 0
    for here, descriptor in _accepted_all(since, but):
        with socket.socket(fileno=descriptor) as each:
            if ends == "both" or here == (ends == "accepted"):
                kept = ctypes.create_string_buffer(NOTHING, len(NOTHING))
                program = struct.pack("HP", 1, ctypes.addressof(kept))
                each.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)
                count += 1
    return count


def _accepted_all(since: dict[str, int], but: int) -> list[tuple[bool, int]]:
    """Of each end whether it was accepted, and a descriptor. Both ends of a connection are of this
    process; who called may send before the other's thread has accepted: that is waited for."""
    for _ in range(WAITS):
        listening, found = set(), []
        new = (number for name, number in descriptors().items() if name not in since)
        for each in _sockets(new):
            with each, suppress(OSError):  # may have been closed by now
                port = each.getsockname()[1]
                if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    listening.add(port)
                elif but not in (port, other := each.getpeername()[1]):
                    found.append((port, other, os.dup(each.fileno())))
        pairs = {(port, other) for port, other, _ in found}
        if pairs and pairs == {(other, port) for port, other in pairs}:
            return [(port in listening, descriptor) for port, _, descriptor in found]
        for *_, descriptor in found:
            os.close(descriptor)
        time.sleep(0.01)
    return []


def _sockets(among: Iterable[int]) -> Iterator[socket.socket]:
    """Those of the internet, duplicated."""
    for descriptor in among:
        with suppress(OSError):
            each = socket.socket(fileno=os.dup(descriptor))
            if each.family in (socket.AF_INET, socket.AF_INET6):
                yield each
            else:
                each.close()
