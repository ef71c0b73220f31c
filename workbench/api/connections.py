"""An HTTP server that takes only as many connections as it has file descriptors for.

Where none is left tornado cannot accept, tries again at once and writes a traceback each time.
"""

import json

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from workbench.api.answers import error

WANTED = 8192  # descriptors to have, where this process may take more than it was given
KEPT = 32  # for what else opens files: modules, pipes, sockets that listen
EACH = 2  # descriptors of a connection: the client's, and that to the engine's process
FULL = "the server: {} connections are open, as many as it takes; try again later"


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

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        if self.open >= self.most:
            stream.write(_refusal(self.most))
            stream.close()
            return
        self.open += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        self.open -= 1
        super().on_close(server_conn)


def _refusal(most: int) -> bytes:
    body = json.dumps(error(FULL.format(most), "server_error")).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
