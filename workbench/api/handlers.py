"""The OpenAI-compatible HTTP API, as tornado handlers over a live engine.

`/v1/models`, `/v1/completions`, `/v1/chat/completions`, the last two also streamed (SSE). A client
that goes away aborts its requests. Every fault of a client is a 4xx with one line.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from engine.core.errors import BadInput
from workbench.api import answers as answers
from workbench.api.access import Access
from workbench.api.gate import KINDS, SWALLOWED, guard
from workbench.api.requests import Asked, chat, completion, read_json
from workbench.live.live import LiveEngine, Ticket
from workbench.live.pieces import AWAY, SPENT, Away, Busy, Piece

BODY = 4 << 20  # bytes of a request's body, at most
BODY_SECONDS = 60
SMALL = 16 << 10  # bytes of a body that is read at once; longer ones wait their turn in a thread
AGAIN = 1  # seconds after which a client may ask again


class Handler(RequestHandler):
    """What all handlers share: JSON errors, no caching. Who may ask is the gate's to say."""

    def initialize(self, live: LiveEngine, turn: asyncio.Lock) -> None:
        self.live, self.turn = live, turn

    def set_default_headers(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status: int, **facts: Any) -> None:
        fault = facts.get("exc_info", (None, None, None))[1]
        line = (fault.log_message or "") if isinstance(fault, HTTPError) else ""
        if status in (429, 503):
            self.set_header("Retry-After", str(AGAIN))
        line = line.replace("%%", "%")  # tornado doubles it, for a formatting that is not ours
        self.finish(answers.error(line or self._reason, KINDS.get(status, "error")))

    def log_exception(self, kind: Any, fault: Any, trace: Any) -> None:
        """A client's fault is the client's to hear; only ours go to the log."""
        if not isinstance(fault, HTTPError):
            super().log_exception(kind, fault, trace)


class Nothing(Handler):
    """Any other address."""

    def prepare(self) -> None:
        raise HTTPError(404, "no such address; there are /v1/models, /v1/completions and chat")


class Models(Handler):
    """`GET /v1/models`."""

    def get(self) -> None:
        self.write(answers.models(self.live))


@stream_request_body
class Generation(Handler):
    """What completions and chat share: read, submit, then answer whole or piece by piece.

    The body is taken in here, so that one too large can be answered: a client listens only once
    it has sent everything.
    """

    kind = ""

    def prepare(self) -> None:
        self.body, self.received = bytearray(), 0  # what is kept; bytes there were
        self.tickets: list[Ticket] = []
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

    async def post(self) -> None:
        if self.received > BODY:
            raise _too_large(self.received)
        # Work of a request's size is for a thread: whoever else is being answered would wait.
        prepare = self._prepare
        if self.received <= SMALL:
            chat = self.kind == "chat"
            asked, prompts = await asyncio.to_thread(prepare) if chat else prepare()
        else:
            async with self.turn:  # one at a time: Python shares one lock among all threads
                asked, prompts = await asyncio.to_thread(prepare)
        if self.gone:
            return
        self.answer = answers.Answer(self.kind, self.live.name, asked)
        pieces: asyncio.Queue[Piece] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(piece: Piece) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        try:
            self._ask(asked, prompts, tell)
        except BadInput as fault:
            self._abort()
            raise HTTPError(_status(fault), str(fault)) from None
        self.live.listeners.add(self)
        try:
            await (self._stream(pieces) if asked.stream else self._whole(pieces))
        except StreamClosedError:
            pass  # the client has gone; nobody to answer
        finally:
            self._abort()

    def on_finish(self) -> None:
        self.live.listeners.discard(self)

    def _read(self) -> Asked:
        kind = self.request.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if kind != "application/json":
            raise HTTPError(415, "content type: send application/json")
        try:
            asked = (chat if self.kind == "chat" else completion)(read_json(bytes(self.body)))
        except BadInput as fault:
            raise HTTPError(400, str(fault)) from None
        if asked.model != self.live.name:
            raise HTTPError(404, f"model {asked.model[:80]!r}: not served; ask {self.live.name!r}")
        return asked

    def _prepare(self) -> tuple[Asked, list[list[int]]]:
        """The body read, its prompts as tokens."""
        asked = self._read()
        prompts = self.live.prompts
        try:
            if self.kind == "chat":
                return asked, [prompts.chat(asked.messages)]
            return asked, [prompts.encode(prompt) for prompt in asked.prompts]
        except BadInput as fault:
            raise HTTPError(_status(fault), str(fault)) from None

    def _ask(self, asked: Asked, prompts: list[list[int]], tell: Callable[[Piece], None]) -> None:
        """Hand in every prompt, or raise BadInput for the first that cannot be."""
        for place, prompt in enumerate(prompts):
            base = place * asked.sampling.n
            ticket = self.live.ask(prompt, asked.sampling, tell, user=asked.user, base=base)
            self.tickets.append(ticket)

    async def _whole(self, pieces: asyncio.Queue[Piece]) -> None:
        while not self.answer.over:
            self.answer.take(await pieces.get())
        refused = self.answer.refused
        if refused:
            ours = refused in (self.live.failure, SPENT)
            raise HTTPError(503 if ours else 400, refused)
        self.write(self.answer.whole())

    async def _stream(self, pieces: asyncio.Queue[Piece]) -> None:
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("X-Accel-Buffering", "no")
        while not self.answer.over:
            for chunk in self.answer.chunks(await pieces.get()):
                self.write(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n")
            await self.flush()
        if self.answer.refused:
            return  # the error was the last event: nobody is to take this for an answer's end
        if self.answer.asked.usage:
            self.write(f"data: {json.dumps(self.answer.usage_chunk())}\n\n")
        self.write("data: [DONE]\n\n")

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self.gone = True
        self._abort()

    def _abort(self) -> None:
        for ticket in self.tickets:
            self.live.abort(ticket)


def _status(fault: BadInput) -> int:
    """What a refusal is called: the client's fault, the moment's, or ours."""
    return 429 if isinstance(fault, Busy) else 503 if isinstance(fault, Away) else 400


def _too_large(size: int) -> HTTPError:
    return HTTPError(413, f"body: {size} bytes; at most {BODY}")


class Completions(Generation):
    """`POST /v1/completions`."""

    kind = "completion"


class Chat(Generation):
    """`POST /v1/chat/completions`."""

    kind = "chat"


def handlers(live: LiveEngine) -> list[tuple[str, type[Handler], dict[str, Any]]]:
    """Routes for a tornado application, of its own or the app's, behind a gate."""
    shared = {"live": live, "turn": asyncio.Lock()}
    return [
        (r"/v1/models", Models, shared),
        (r"/v1/completions", Completions, shared),
        (r"/v1/chat/completions", Chat, shared),
        (r"/v1/.*", Nothing, shared),
    ]


def application(live: LiveEngine, access: Access) -> Application:
    """The API alone, without pages."""
    known = handlers(live)
    routes = [*known, (r"/.*", Nothing, known[0][2])]
    made = Application(routes, log_function=lambda handler: None)
    guard(made, access)
    return made
