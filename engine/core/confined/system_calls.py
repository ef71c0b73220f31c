"""System calls a process gives up: namespaces of its own, and a filter (seccomp) over the rest.

Linux on x86-64 and arm64. Every call that is not on the list is answered by EPERM. Raises OSError
where the system has no such thing or says no.
"""

import ctypes
import errno
import os
import platform
import struct

NEW_NAMESPACES = 0x10000000 | 0x40000000 | 0x08000000 | 0x00020000  # users, network, IPC, mounts
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2  # of prctl
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # of the filter's machine
# read, write, close, fstat, lseek, mmap, mprotect, munmap, brk, rt_sigaction, rt_sigprocmask,
# rt_sigreturn, mremap, madvise, setitimer, exit, futex, clock_gettime, exit_group
CALLS = {
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 25, 28, 38, 60, 202, 228, 231),
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 216, 233, 103, 93, 98, 113, 94),
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def leave_namespaces() -> None:
    """A network without any device, and users, mounts and shared memory of its own."""
    _check(_libc().unshare(NEW_NAMESPACES))


def filter_calls() -> None:
    """Refuse from now on every call but those that memory and open pipes need, for good."""
    machine = platform.machine()
    if machine not in CALLS:
        raise OSError(errno.ENOSYS, f"no filter for {machine}")
    architecture, allowed = CALLS[machine]
    code = [
        (LOAD, 0, 0, 4),  # the architecture: its numbers are those below
        (EQUAL, 0, len(allowed) + 1, architecture),
        (LOAD, 0, 0, 0),  # the call's number
        *((EQUAL, len(allowed) - place, 0, call) for place, call in enumerate(allowed)),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]
    packed = b"".join(struct.pack("=HBBI", *each) for each in code)
    program, libc = _Program(len(code), packed), _libc()
    _check(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
