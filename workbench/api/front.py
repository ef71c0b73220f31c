"""A reverse proxy before the engine's process: what reaches it is passed on as it comes.

The engine runs, with the API, in a process of its own on a Unix socket. Where that process ends,
by a fault, a signal or for want of memory, every open answer ends with an error that no client
takes for success, what comes meanwhile is put off, and another process is started.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from tornado.http1connection import HTTP1Connection, HTTP1ConnectionParameters
from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream, StreamClosedError

from workbench.api.answers import error
from workbench.api.connections import Server
from workbench.api.drain import Stopping, Watch, on_signals

HEADERS = 32 << 10
ANY = 1 << 40  # bytes of a body: the engine's server says what is too large
AGAIN = 2  # seconds after which a client may ask again
# Of one connection, not of the message (RFC 9110, section 7.6.1); the rest is passed on.
BY_HOP = ("Connection", "Keep-Alive", "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade")
GONE = "the engine ended before its answer did"
AWAY = "the engine ended"
NEXT = {False: "is being started again", True: "is not started again: the server is stopping"}
STREAM = "text/event-stream"
NOTHING: Mapping[str, str] = {}


class Engine(Protocol):
    """The engine's process."""

    async def connect(self) -> IOStream:
        """A connection to its server. Raises OSError or StreamClosedError where there is none."""

    async def ended(self) -> str:
        """Waits until it has ended; how it did, in a few words."""

    async def start(self) -> None:
        """Start it again and wait until it answers. Raises BadInput where it cannot."""

    def stop(self) -> None:
        """Ask it to finish what is open and end; at once if asked again."""


async def serve_before(
    engine: Engine,
    host: str,
    port: int,
    ready: Callable[[], None],
    say: Callable[[str], None],
    watch: Watch = on_signals,
) -> None:
    """Pass on what reaches `port` to `engine`, which has started, until `watch` tells to stop.

    An engine that ends is started again, by `say`; one that then cannot start ends the server
    (BadInput).
    """
    stopping = Stopping()
    server = Server(
        _Front(engine, stopping),
        max_body_size=ANY,
        max_header_size=HEADERS,
        body_timeout=60,
        idle_connection_timeout=120,
    )

    def told() -> None:
        stopping.told()
        engine.stop()

    watch(asyncio.get_running_loop(), told)
    server.listen(port, host)
    ready()
    try:
        while True:
            how = await engine.ended()
            if stopping.asked.is_set():
                return
            say(f"workbench: the engine's process ended ({how}); it is started again")
            started = asyncio.ensure_future(engine.start())
            asked = asyncio.ensure_future(stopping.asked.wait())
            await asyncio.wait((started, asked), return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            if not started.done():
                started.cancel()
                return
            started.result()
            say("workbench: the engine answers again")
    finally:
        server.stop()
        await asyncio.sleep(0)  # what broke says so before its connection is closed
        await server.close_all_connections()


class _Front(HTTPServerConnectionDelegate):
    def __init__(self, engine: Engine, stopping: Stopping) -> None:
        self.engine, self.stopping = engine, stopping

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        return _Relay(self.engine, self.stopping, request_conn)


class _Relay(HTTPMessageDelegate):
    """One request: its parts go to the engine as they come, the answer's come back.

    Either side waits where the other is slow, and closes where the other does.
    """

    def __init__(self, engine: Engine, stopping: Stopping, client: HTTP1Connection) -> None:
        self.engine, self.stopping, self.client = engine, stopping, client
        self.upstream: HTTP1Connection | None = None
        self.begun = self.over = False
        self.streams = False  # whether the answer is a stream of events
        self.tail = b""  # its last bytes
        client.set_close_callback(self._left)

    async def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> None:
        try:
            stream = await self.engine.connect()
        except (OSError, StreamClosedError):
            self._put_off(self._told(AWAY))
            return
        limits = HTTP1ConnectionParameters(
            no_keep_alive=True, max_header_size=HEADERS, max_body_size=ANY
        )
        self.upstream = HTTP1Connection(stream, True, limits)
        sent = _of_the_message(headers)
        sent.pop("Expect", None)  # answered here
        sent["Connection"] = "close"
        try:
            await _quietly(self.upstream.write_headers(start_line, sent))
        except ValueError:  # lengths that are no numbers
            self.upstream.close()
            self._say(
                400,
                "Bad Request",
                error("headers: Content-Length is no length", "invalid_request_error"),
            )
            return
        self._answering = asyncio.ensure_future(self._answer(self.upstream))

    async def data_received(self, chunk: bytes) -> None:
        if self.upstream is not None and not self.over:
            await _quietly(self.upstream.write(chunk))

    def finish(self) -> None:
        if self.upstream is not None and not self.over:
            with suppress(StreamClosedError):
                self.upstream.finish()

    def on_connection_close(self) -> None:
        self._left()

    def _left(self) -> None:
        """The client has gone: so does the engine's connection, which ends its work for it."""
        self.over = True
        if self.upstream is not None:
            self.upstream.close()

    async def _answer(self, upstream: HTTP1Connection) -> None:
        with suppress(StreamClosedError, HTTPInputError, OSError):
            await upstream.read_response(_Answer(self))
        if not self.over:
            self._broken()
        upstream.close()

    def _broken(self) -> None:
        """The engine is gone, the answer is not whole."""
        if not self.begun:
            self._put_off(self._told(GONE))
            return
        self.over = True
        if self.streams:
            between = b"" if self.tail.endswith(b"\n\n") else b"\n\n"
            said = json.dumps(error(self._told(GONE), "server_error")).encode()
            with suppress(StreamClosedError):
                self.client.write(between + b"data: " + said + b"\n\n")
                self.client.finish()
        elif self.client.stream is not None:
            # Shorter than its headers promised, which every client notices.
            self.client.stream.close()

    def _told(self, what: str) -> str:
        """What became of the engine, and what comes next."""
        return f"{what} and {NEXT[self.stopping.asked.is_set()]}"

    def _put_off(self, line: str) -> None:
        """503: nothing of an answer has gone out."""
        more = {"Retry-After": str(AGAIN)}
        self._say(503, "Service Unavailable", error(line, "server_error"), more)

    def _say(
        self, status: int, reason: str, told: dict[str, Any], more: Mapping[str, str] = NOTHING
    ) -> None:  # fmt: skip
        """An answer of the front's own."""
        self.begun = self.over = True
        body = json.dumps(told).encode()
        headers = HTTPHeaders({
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **more,
        })  # fmt: skip
        start_line = ResponseStartLine("HTTP/1.1", status, reason)
        with suppress(StreamClosedError):
            self.client.write_headers(start_line, headers, body)
            self.client.finish()


class _Answer(HTTPMessageDelegate):
    """The engine's answer to one request, on its way to the client."""

    def __init__(self, relay: _Relay) -> None:
        self.relay = relay

    async def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> None:
        assert isinstance(start_line, ResponseStartLine)
        if start_line.code < 200 or self.relay.over:
            return
        self.relay.begun = True
        self.relay.streams = headers.get("Content-Type", "").startswith(STREAM)
        await _quietly(self.relay.client.write_headers(start_line, _of_the_message(headers)))

    async def data_received(self, chunk: bytes) -> None:
        if not self.relay.over:
            self.relay.tail = (self.relay.tail + chunk)[-2:]
            await _quietly(self.relay.client.write(chunk))

    def finish(self) -> None:
        if not self.relay.over:
            self.relay.over = True
            with suppress(StreamClosedError):
                self.relay.client.finish()


def _of_the_message(headers: HTTPHeaders) -> HTTPHeaders:
    """The headers that are not of one connection."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    left_out = named | {name.lower() for name in BY_HOP}
    kept = HTTPHeaders()
    for name, value in headers.get_all():
        if name.lower() not in left_out:
            kept.add(name, value)
    return kept


async def _quietly(written: Awaitable[None]) -> None:
    """Wait until it is; who has closed is told elsewhere."""
    with suppress(StreamClosedError):
        await written


def how_it_ended(code: int) -> str:
    """An exit code in a few words."""
    if code >= 0:
        return f"exit code {code}"
    kill = ", as a system short of memory does" if code == -9 else ""
    return f"signal {-code}{kill}"


def socket_in(folder: str) -> str:
    """Where the engine's server listens: in a folder that only this user may enter."""
    return os.path.join(folder, "engine")
