"""Sockets that went half open: what is sent to them vanishes, and nobody is told of it.

A filter of the kernel drops every segment that comes in, acknowledgements and ends as well, as a
switch does that lost its power.
"""

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

Ends = Literal["accepted", "called", "both"]
ATTACH_FILTER = 26  # of Linux's sockets
NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)  # BPF: of each packet, keep no byte


def descriptors() -> set[int]:
    """This process's open ones."""
    return {int(name) for name in os.listdir("/proc/self/fd")}


def deafen(since: set[int], but: int, ends: Ends) -> int:
    """What was connected after the descriptors `since` were looked at hears nothing more, unless
    an end of it is at port `but`; how many ends that are. `ends`: which of a connection."""
    listening, connected = set(), []
    for each in _sockets(descriptors() - since):
        with each, suppress(OSError):  # may have been closed by now
            port = each.getsockname()[1]
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                listening.add(port)
            elif but not in (port, each.getpeername()[1]):
                connected.append((port, os.dup(each.fileno())))
    count = 0
    for port, descriptor in connected:
        with socket.socket(fileno=descriptor) as each:
            if ends == "both" or (port in listening) == (ends == "accepted"):
                kept = ctypes.create_string_buffer(NOTHING, len(NOTHING))
                program = struct.pack("HP", 1, ctypes.addressof(kept))
                each.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)
                count += 1
    return count


def _sockets(among: set[int]) -> Iterator[socket.socket]:
    """Those of the internet, duplicated."""
    for descriptor in among:
        with suppress(OSError):
            each = socket.socket(fileno=os.dup(descriptor))
            if each.family in (socket.AF_INET, socket.AF_INET6):
                yield each
            else:
                each.close()
