"""What handlers of the API share: JSON errors, and bodies taken in, weighed and read as JSON.

A body is taken in here, so that one too large can be answered: a client listens only once it has
sent everything.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler, stream_request_body

from engine.core.errors import BadInput
from workbench.api import answers as answers
from workbench.api.access import Access
from workbench.api.gate import KINDS, SWALLOWED
from workbench.api.json_text import LONG, read_json
from workbench.live.live import LiveEngine
from workbench.live.pieces import AWAY, Away, Busy

BODY = 4 << 20  # bytes of a request's body, at most
BODY_SECONDS = 60
SMALL = 16 << 10  # bytes of a body that is read at once, and …
MIDDLE = 128 << 10  # … in a thread, as long a prompt as many send; longer ones wait their turn
TOGETHER = 1 << 16  # bytes sent in one go
AGAIN = 1  # seconds after which a client may ask again
Made = TypeVar("Made")


class Handler(RequestHandler):
    """What all handlers share: JSON errors, no caching. Who may ask is the gate's to say."""

    def initialize(
        self, live: LiveEngine, turn: asyncio.Lock, access: Access | None = None
    ) -> None:  # fmt: skip
        self.live, self.turn, self.access = live, turn, access

    @property
    def client(self) -> str:
        """The name of the key it bears; empty where there are no keys."""
        return self.access.client(self.request.headers) if self.access else ""

    def set_default_headers(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status: int, **facts: Any) -> None:
        fault = facts.get("exc_info", (None, None, None))[1]
        line = (fault.log_message or "") if isinstance(fault, HTTPError) else ""
        if status in (429, 503):
            self.set_header("Retry-After", str(AGAIN))
        if status == 405:
            own, none = type(self), RequestHandler
            its = [m for m in self.SUPPORTED_METHODS
                   if getattr(own, m.lower()) is not getattr(none, m.lower())]  # fmt: skip
            self.set_header("Allow", ", ".join(its))
        line = line.replace("%%", "%")  # tornado doubles it, for a formatting that is not ours
        self.finish(answers.error(line or self._reason, KINDS.get(status, "error")))

    def log_exception(self, kind: Any, fault: Any, trace: Any) -> None:
        """A client's fault is the client's to hear; only ours go to the log."""
        if not isinstance(fault, HTTPError):
            super().log_exception(kind, fault, trace)


@stream_request_body
class Body(Handler):
    """A handler of requests with a JSON body."""

    def prepare(self) -> None:
        self.body, self.received = bytearray(), 0  # what is kept; bytes there were
        self.gone = False  # whether the client has
        if self.live.draining:
            raise HTTPError(503, AWAY)
        self.request.connection.set_max_body_size(SWALLOWED)
        self.request.connection.set_body_timeout(BODY_SECONDS)
        if (length := self._length()) > SWALLOWED:
            raise _too_large(length)  # said at once: too much even to be dropped

    def _length(self) -> int:
        """Bytes the client announces; 0 where it says nothing that makes sense."""
        try:
            return int(self.request.headers.get("Content-Length", "0"))
        except ValueError:
            return 0

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self.received <= BODY:
            self.body += data

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self.gone = True

    async def read(self, made: Callable[[dict[str, Any]], Made], aside: bool = False) -> Made:
        """What `made` makes of the body's fields; BadInput of it is the client's to hear.

        Work of a request's size is for a thread, and what may wait for others (`aside`).
        """
        if self.received > BODY:
            raise _too_large(self.received)
        kind = self.request.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if kind != "application/json":
            raise HTTPError(415, "content type: send application/json")
        coding = self.request.headers.get("Content-Encoding", "identity").strip().lower()
        if coding != "identity":
            raise HTTPError(415, f"content encoding: {coding[:20]!r} is not undone; send it plain")

        def work() -> Made:
            try:
                return made(read_json(bytes(self.body)))
            except BadInput as fault:
                raise HTTPError(status_of(fault), str(fault)) from None

        if self.received <= SMALL and not aside:
            return work()
        if self.received <= MIDDLE:
            return await asyncio.to_thread(work)
        async with self.turn:  # one at a time: Python shares one lock among all threads
            return await asyncio.to_thread(work)

    async def send(self, parts: list[bytes]) -> None:
        """A whole answer, part by part, so that others have the event loop in between."""
        self.set_header("Content-Length", str(sum(map(len, parts))))
        with suppress(StreamClosedError):  # the client has gone; nobody to answer
            for part in parts:
                await self.pass_on(part)

    async def pass_on(self, data: bytes) -> None:
        """Some of an answer; others come in between where it is long."""
        for at in range(0, len(data), TOGETHER):
            self.write(data[at : at + TOGETHER])
            if len(data) >= LONG:
                await self.flush()
                await asyncio.sleep(0)

    def check_model(self, name: Any) -> None:
        """Raises 404 where another model is asked for."""
        if name != self.live.name:
            raise HTTPError(404, f"model {str(name)[:80]!r}: not served; ask {self.live.name!r}")


def status_of(fault: BadInput) -> int:
    """What a refusal is called: the client's fault, the moment's, or ours."""
    return 429 if isinstance(fault, Busy) else 503 if isinstance(fault, Away) else 400


def _too_large(size: int) -> HTTPError:
    return HTTPError(413, f"body: {size} bytes; at most {BODY}")
