"""An HTTP server that takes only as many connections as it has file descriptors for, and says so
where headers are longer than it takes.

Where no descriptor is left tornado cannot accept, tries again at once and writes a traceback each
time: so many are never taken in, and where others have taken them, who comes is turned away. Where
headers are too long it closes without a word.
"""

import asyncio
import errno
import json
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream, UnsatisfiableReadError

from workbench.api.answers import error

WANTED = 8192  # descriptors to have, where this process may take more than it was given
KEPT = 32  # for what else opens files: modules, pipes, sockets that listen
EACH = 2  # descriptors of a connection: the client's, and that to the engine's process
MOMENT = 0.01  # seconds between looks for a descriptor while even the one kept back is taken
SPENT = "the server: no file descriptor is left; try again later"
FULL = "the server: {} connections are open, as many as it takes; try again later"
LONG = "headers: longer than {} bytes with the request line, the most that are read"
LINGER = 1.0  # seconds in which what a client still sends is read: a reset would drop the answer

_Fault = (
    None
    | bool
    | BaseException
    | tuple[type[BaseException] | None, BaseException | None, TracebackType | None]
)


def room() -> int:
    """How many connections there may be, after asking for descriptors up to what is allowed."""
    try:
        import resource
    except ImportError:  # not posix: no such limit
        return WANTED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return WANTED
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):  # some systems allow less than they say
            pass
    return max(1, (soft - KEPT) // EACH)


class Server(HTTPServer):
    """A server of HTTP; who comes when it is full gets 503 before it has asked."""

    most, open = 0, 0  # connections

    def initialize(self, *args: object, **more: object) -> None:
        super().initialize(*args, **more)  # type: ignore[arg-type]
        self.most = room()

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        super().add_sockets(map(_Sparing, sockets))  # type: ignore[arg-type]

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        if self.open >= self.most:
            stream.write(_refusal(503, "Service Unavailable", FULL.format(self.most)))
            stream.close()
            return
        self.open += 1
        longest = self.conn_params.max_header_size
        super().handle_stream(_Telling(stream, longest, self._left), address)

    def _left(self) -> None:
        self.open -= 1


def bounded(server: HTTPServer) -> None:
    """Make a server that a library has made one of ours."""
    server.__class__ = Server
    assert isinstance(server, Server)
    server.most = room()
    for place, listening in list(server._sockets.items()):
        server._handlers.pop(place)()
        server.add_sockets([listening])


class _Sparing:
    """A listening socket that keeps a descriptor back: where others have taken all, it is what
    whoever comes is accepted with, to be told so."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening, self.spare = listening, -1
        self._keep()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listening, name)

    def accept(self) -> tuple[socket.socket, object]:
        try:
            return self.listening.accept()
        except OSError as fault:
            if fault.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        if self.spare < 0:
            time.sleep(MOMENT)
            self._keep()
            raise BlockingIOError  # so tornado looks again
        self._give()
        with suppress(OSError), self.listening.accept()[0] as taken:
            taken.setblocking(False)
            taken.send(_refusal(503, "Service Unavailable", SPENT))
        self._keep()
        raise ConnectionAbortedError  # so tornado passes it over

    def close(self) -> None:
        self._give()
        self.listening.close()

    def _give(self) -> None:
        if self.spare >= 0:
            os.close(self.spare)
            self.spare = -1

    def _keep(self) -> None:
        with suppress(OSError):
            self.spare = os.dup(self.listening.fileno())


class _Telling(IOStream):
    """What a client and the server send one another, of headers up to `longest` bytes; `left` hears
    that it is closed, of a websocket too, which the server itself forgets once it is one."""

    def __init__(self, taken: IOStream, longest: int, left: Callable[[], None]) -> None:
        super().__init__(
            taken.socket,
            max_buffer_size=taken.max_buffer_size,
            read_chunk_size=taken.read_chunk_size,
        )
        self.longest, self.left, self.at_headers = longest, left, False

    def read_until_regex(self, regex: bytes, max_bytes: int | None = None) -> Awaitable[bytes]:
        self.at_headers = True
        return super().read_until_regex(regex, max_bytes)

    def read_until(self, delimiter: bytes, max_bytes: int | None = None) -> Awaitable[bytes]:
        self.at_headers = False  # at a chunk of a body, whose answer may have begun
        return super().read_until(delimiter, max_bytes)

    def close(self, exc_info: _Fault = False) -> None:
        before = self.closed()
        too_long = isinstance(exc_info, UnsatisfiableReadError) and self.at_headers
        if too_long and not before:
            with suppress(OSError):
                self._told = asyncio.ensure_future(_last_words(self.socket.dup(), self.longest))
        super().close(exc_info)
        if not before:
            self.left()


async def _last_words(left: socket.socket, longest: int) -> None:
    """431, and no more: the connection is closed once the client has, or in `LINGER`."""
    loop = asyncio.get_running_loop()
    refusal = _refusal(431, "Request Header Fields Too Large", LONG.format(longest))
    with left, suppress(OSError, TimeoutError):
        left.setblocking(False)
        left.send(refusal)
        left.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(LINGER):
            while await loop.sock_recv(left, 1 << 16):
                pass


def _refusal(status: int, reason: str, line: str) -> bytes:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    body = json.dumps(error(line, kind)).encode()
    again = "Retry-After: 1\r\n" if status == 503 else ""
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{again}"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
