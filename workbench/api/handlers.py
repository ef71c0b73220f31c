"""The OpenAI-compatible HTTP API, as tornado handlers over a live engine.

Completions, chats and responses, whole or streamed (SSE). A client that goes away aborts its
requests. Every fault of a client is a 4xx with one line.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
from tornado.iostream import StreamClosedError
from tornado.web import Application, HTTPError

from engine.core.errors import BadInput
from engine.core.limits import check
from engine.inference.requests.request import Source
from engine.models.text.grammar import GrammarGuide
from workbench.api import answers as answers
from workbench.api import responses as responses
from workbench.api.about import Document, Health, Metrics, Model, Models, Nothing
from workbench.api.access import Access
from workbench.api.body import BODY, Body, Handler, status_of
from workbench.api.gate import SWALLOWED, guard
from workbench.api.json_text import write_json, write_parts
from workbench.api.requests import Asked, chat, completion
from workbench.api.vectors import Embeddings
from workbench.api.words import Detokenize, Tokenize
from workbench.live.live import LiveEngine
from workbench.live.pieces import LATE, SPENT, Piece
from workbench.live.ticket import Ticket

__all__ = ["BODY", "SWALLOWED", "application", "handlers"]
Prompts = list[list[int]]
TAKEN, SENT = 64, 8  # pieces put together, or sent on, before others have the event loop


class Generation(Body):
    """What all routes that generate share: read, submit, then answer whole or piece by piece."""

    kind = ""
    reads: Callable[[dict[str, Any]], Asked]
    tickets: tuple[Ticket, ...] = ()  # none while the body comes, and a client may leave then
    taken = 0  # pieces of its answers

    async def post(self) -> None:
        asked, prompts, guide, texts, negative = await self.read(self._prepared, self._waits())
        if self.gone:
            return
        self.answer = answers.Answer(self.kind, self.live.name, asked, texts)
        pieces: asyncio.Queue[Piece] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(piece: Piece) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        try:
            self._ask(asked, prompts, guide, tell, negative)
        except BadInput as fault:
            self._abort()
            raise HTTPError(status_of(fault), str(fault)) from None
        self.live.listeners.add(self)
        try:
            await (self._stream(pieces) if asked.stream else self._whole(pieces))
        except StreamClosedError:
            pass  # the client has gone; nobody to answer
        finally:
            self._abort()

    def on_finish(self) -> None:
        self.live.listeners.discard(self)

    def _waits(self) -> bool:
        """Whether to read the body may be to wait for another process: what renders templates,
        compiles grammars, or encodes by unfamiliar patterns."""
        guided = b"response_format" in self.body or b"\\u" in self.body  # a name may be in disguise
        return self.kind != "completion" or guided or not self.live.prompts.at_once

    def _prepared(
        self, fields: dict[str, Any]
    ) -> tuple[Asked, Prompts, GrammarGuide | None, tuple[str, ...], np.ndarray | None]:
        """The body read: its prompts as tokens, its grammar, prompts to be said again, and what a
        guided answer is steered away from."""
        asked = type(self).reads(fields)
        self.check_model(asked.model)
        prompts, form, texts = self.live.prompts, asked.form, ()
        guide = None if form.free else form.guide(prompts.grammars)
        wish, negative = asked.sampling, None
        if wish.guidance != 1.0:  # once for all, and not by the engine between two steps
            said = prompts.encode(wish.negative_prompt, name="negative_prompt")
            negative = np.array(said, np.int32)
        if asked.messages:
            said = prompts.chat(asked.messages, form.tools)
            prompts.fit(said)
            return asked, [said], guide, (), negative
        encoded = [prompts.encode(prompt, suffix=asked.suffix) for prompt in asked.prompts]
        for tokens in encoded:  # before they become arrays, on the event loop
            prompts.fit(tokens)
        numbers = asked.numbers([len(prompt) for prompt in encoded], prompts.context)
        check("logprobs", "log-probabilities asked for", numbers, "answer_numbers")
        if asked.echo:
            texts = tuple(p if isinstance(p, str) else prompts.decode(p) for p in asked.prompts)
        return asked, encoded, guide, texts, negative

    def _ask(
        self, asked: Asked, prompts: Prompts, guide: GrammarGuide | None,
        tell: Callable[[Piece], None], negative: np.ndarray | None,
    ) -> None:  # fmt: skip
        """Hand in every prompt, or raise BadInput for the first that cannot be."""
        client, parent = self.client, self.request.headers.get("traceparent", "")
        wishes = {"user": asked.user or client, "salt": client, "prompt_tops": asked.scores,
                  "negative": negative,
                  "source": Source() if len(prompts) > 1 else None}  # fmt: skip
        for place, prompt in enumerate(prompts):
            base, own = place * asked.sampling.n, None if guide is None else guide.fork()
            ticket = self.live.ask(
                prompt, asked.sampling, tell, base=base, parent=parent, guide=own, **wishes
            )
            self.tickets = (*self.tickets, ticket)

    async def _whole(self, pieces: asyncio.Queue[Piece]) -> None:
        while not self.answer.over:
            self.answer.take(await pieces.get())
            await self._between(TAKEN)
        self._check()
        if self.answer.heavy:  # Python's lock is shared, but others' tokens come in between
            await self.send(await asyncio.to_thread(lambda: write_parts(self.body_of_answer())))
        else:
            self.write(write_json(self.body_of_answer()))

    def body_of_answer(self) -> dict[str, Any]:
        return self.answer.whole()

    def _check(self) -> None:
        """Raises where the answer is a refusal."""
        if refused := self.answer.refused:
            ours = refused in (self.live.failure, SPENT)
            raise HTTPError(429 if refused == LATE else 503 if ours else 400, refused)

    def events(self, piece: Piece) -> list[str]:
        """What to send for a piece, as events of a stream."""
        return [_data(chunk) for chunk in self.answer.chunks(piece)]

    def last_events(self) -> list[str]:
        usage = [_data(self.answer.usage_chunk())] if self.answer.asked.usage else []
        return [*usage, "data: [DONE]\n\n"]

    async def _between(self, most: int) -> None:
        """Others' turn on the event loop after `most` pieces: those that stand ready are got
        without it, and an answer of thousands may come faster than it is sent."""
        self.taken += 1
        if self.taken % most == 0:
            await asyncio.sleep(0)

    async def _stream(self, pieces: asyncio.Queue[Piece]) -> None:
        sent = False
        while not self.answer.over:
            piece = await pieces.get()
            await self._between(SENT)
            if piece.prompt is None:
                events = self.events(piece)
            else:
                events = await asyncio.to_thread(self.events, piece)
            if self.answer.refused and not sent:
                self._check()
            if not sent:
                self.set_header("Content-Type", "text/event-stream; charset=utf-8")
                self.set_header("X-Accel-Buffering", "no")
                sent = True
            for event in events:
                await self.pass_on(event.encode())
            await self.flush()
        if self.answer.refused:
            return  # the error was the last event: nobody is to take this for an answer's end
        for event in self.last_events():
            self.write(event)

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self._abort()

    def _abort(self) -> None:
        for ticket in self.tickets:
            self.live.abort(ticket)


def _data(chunk: dict[str, Any]) -> str:
    return f"data: {write_json(chunk, ascii=False)}\n\n"


class Completions(Generation):
    """`POST /v1/completions`."""

    kind = "completion"
    reads = staticmethod(completion)


class Chat(Generation):
    """`POST /v1/chat/completions`."""

    kind = "chat"
    reads = staticmethod(chat)


class Responses(Generation):
    """`POST /v1/responses`: the part of it that is plain text."""

    kind = "response"
    reads = staticmethod(responses.read)

    async def post(self) -> None:
        self.narrator: responses.Narrator | None = None
        await super().post()

    def body_of_answer(self) -> dict[str, Any]:
        return responses.whole(self.answer)

    def events(self, piece: Piece) -> list[str]:
        self.narrator = self.narrator or responses.Narrator(self.answer)
        return self.narrator.events(piece)

    def last_events(self) -> list[str]:
        return []


def handlers(
    live: LiveEngine, access: Access | None = None
) -> list[tuple[str, type[Handler], dict[str, Any]]]:
    """Routes for a tornado application, of its own or the app's, behind a gate."""
    shared = {"live": live, "turn": asyncio.Lock(), "access": access}
    routes: list[tuple[str, type[Handler]]] = [
        (r"/health", Health),
        (r"/metrics", Metrics),
        (r"/openapi.json", Document),
        (r"/tokenize", Tokenize),
        (r"/detokenize", Detokenize),
        (r"/v1/models", Models),
        (r"/v1/models/(.+)", Model),
        (r"/v1/completions", Completions),
        (r"/v1/chat/completions", Chat),
        (r"/v1/responses", Responses),
        (r"/v1/embeddings", Embeddings),
        (r"/v1/.*", Nothing),
    ]
    return [(path, handler, shared) for path, handler in routes]


def application(live: LiveEngine, access: Access) -> Application:
    """The API alone, without pages."""
    known = handlers(live, access)
    routes = [*known, (r"/.*", Nothing, known[0][2])]
    made = Application(routes, log_function=lambda handler: None)
    guard(made, access)
    return made
