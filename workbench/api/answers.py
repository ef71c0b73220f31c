"""Answers in the OpenAI shape, made from the engine's pieces. Pure: no sockets, no engine."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from workbench.api import logprobs
from workbench.api.logprobs import Offsets
from workbench.api.requests import Asked
from workbench.live.live import LiveEngine
from workbench.live.pieces import Piece, PromptFacts, TokenFacts

OBJECTS = {
    "completion": ("cmpl", "text_completion", "text_completion"),
    "chat": ("chatcmpl", "chat.completion", "chat.completion.chunk"),
    "response": ("resp", "response", "response"),
}


def error(line: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": line, "type": kind, "param": None, "code": None}}


def model(live: LiveEngine) -> dict[str, Any]:
    row = {"id": live.name, "object": "model", "created": live.created, "owned_by": "workbench"}
    if live.built is not None:
        row["max_model_len"] = live.built.executor.facts.context
    return row


def models(live: LiveEngine) -> dict[str, Any]:
    return {"object": "list", "data": [model(live)]}


MANY = 2000  # log-probabilities; an answer with more is written down beside the event loop


@dataclass
class Choice:
    """One answer growing."""

    text: str = ""
    reason: str | None = None
    tokens: list[TokenFacts] = field(default_factory=list)
    begun: bool = False
    offsets: Offsets = field(default_factory=Offsets)  # of tokens streamed

    @property
    def likelihood(self) -> float:
        """Log-probability of a token, in the mean."""
        return sum(value for _, value, _ in self.tokens) / max(1, len(self.tokens))


class Answer:
    """Collects pieces into choices: `whole()` at the end, or `chunks(piece)` as they come.

    `texts`: the prompts, where they are to be said again before their answers.
    """

    def __init__(
        self, kind: str, model: str, asked: Asked, texts: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        prefix, self.object, self.chunk_object = OBJECTS[kind]
        self.kind, self.model, self.asked, self.texts = kind, model, asked, texts
        self.id, self.created = f"{prefix}-{uuid.uuid4().hex}", int(time.time())
        self.each = asked.sampling.n  # answers to a prompt
        self.choices = [Choice() for _ in range(max(1, len(asked.prompts)) * self.each)]
        self.prompt_tokens: dict[int, int] = {}  # by prompt
        self.cached: dict[int, int] = {}
        self.scores: dict[int, Iterable[PromptFacts]] = {}
        self.refused, self._left = "", len(self.choices)

    @property
    def heavy(self) -> bool:
        """Whether writing it down takes a while: it has many tokens or log-probabilities."""
        told = sum(len(choice.tokens) for choice in self.choices)
        return bool(self.scores) or told * (1 + self.asked.sampling.logprobs) > MANY

    @property
    def over(self) -> bool:
        return not self._left

    def take(self, piece: Piece) -> Choice:
        choice, prompt = self.choices[piece.index], piece.index // self.each
        self.prompt_tokens[prompt], self.cached[prompt] = piece.prompt_tokens, piece.cached
        if piece.prompt is not None:
            self.scores[prompt] = piece.prompt
        if not self.asked.empty:
            choice.text += piece.text
            if piece.token is not None:
                choice.tokens.append(piece.token)
        if piece.reason:
            self._left -= choice.reason is None
            choice.reason = (
                "length" if self.asked.empty and piece.reason == "stop" else piece.reason
            )
            self.refused = self.refused or piece.refused
        return choice

    def whole(self) -> dict[str, Any]:
        return {
            **self._head(self.object),
            "choices": [self._choice(index, place) for index, place in enumerate(self.kept())],
            "usage": self.usage(),
        }

    def kept(self) -> list[int]:
        """Which choices are answered: of each prompt's the likeliest, where only some are kept."""
        places = list(range(len(self.choices)))
        if not self.asked.keep:
            return places
        found = []
        for first in range(0, len(places), self.each):
            mine = places[first : first + self.each]
            mine.sort(key=lambda place: -self.choices[place].likelihood)
            found += mine[: self.asked.keep]
        return found

    def _choice(self, index: int, place: int) -> dict[str, Any]:
        choice, scores = self.choices[place], self.scores.get(place // self.each)
        text, calls = self.asked.form.undone(choice.text)
        shared: dict[str, Any] = {"index": index, "finish_reason": choice.reason, "logprobs": None}
        if calls:
            shared["finish_reason"] = "tool_calls"
        if self.asked.sampling.logprobs:
            shared["logprobs"] = self._logprobs(choice.tokens, self._said(place), Offsets())
        if self.asked.scores >= 0 and not self.asked.echo:
            shared["prompt_logprobs"] = logprobs.of_prompt(scores or ())
        if self.kind == "chat":
            message = {"role": "assistant", "content": text or (None if calls else "")}
            return {**shared, "message": {**message, **({"tool_calls": calls} if calls else {})}}
        return {**shared, "text": self._echo(place) + text}

    def _echo(self, place: int) -> str:
        return self.texts[place // self.each] if self.asked.echo else ""

    def _said(self, place: int) -> Iterable[PromptFacts]:
        """What the model makes of the prompt, where the prompt is said again."""
        return self.scores.get(place // self.each, ()) if self.asked.echo else ()

    def chunks(self, piece: Piece) -> list[dict[str, Any]]:
        """What to send for one piece; nothing for one that completes no text."""
        told = bool(self.refused)
        choice = self.take(piece)
        if piece.refused:
            return [] if told else [error(piece.refused, "invalid_request_error")]
        if self.asked.empty:
            piece = Piece(piece.index, reason=choice.reason or "")
        text, calls = piece.text, []
        if self.asked.form.tools:  # whether a text is a call is known at its end
            if not piece.reason:
                return []
            text, calls = self.asked.form.undone(choice.text)
        if not text and not piece.reason and piece.token is None:
            return []
        reason = "tool_calls" if calls else choice.reason
        shared: dict[str, Any] = {"index": piece.index, "finish_reason": reason, "logprobs": None}
        first = () if choice.begun else self._said(piece.index)
        if self.asked.sampling.logprobs and (piece.token is not None or first):
            last = [] if piece.token is None else [piece.token]
            shared["logprobs"] = self._logprobs(last, first, choice.offsets)
        if self.kind == "chat":
            delta = {} if choice.begun else {"role": "assistant"}
            if calls:
                delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(calls)]
            shared["delta"] = {**delta, **({"content": text} if text else {})}
        else:
            shared["text"] = text if choice.begun else self._echo(piece.index) + text
        choice.begun = True
        return [{**self._head(self.chunk_object), "choices": [shared]}]

    def usage_chunk(self) -> dict[str, Any]:
        return {**self._head(self.chunk_object), "choices": [], "usage": self.usage()}

    def _head(self, name: str) -> dict[str, Any]:
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}

    def usage(self) -> dict[str, Any]:
        asked, made = sum(self.prompt_tokens.values()), sum(len(c.tokens) for c in self.choices)
        counts = {"prompt_tokens": asked, "completion_tokens": made, "total_tokens": asked + made}
        return {**counts, "prompt_tokens_details": {"cached_tokens": sum(self.cached.values())}}

    def _logprobs(
        self, tokens: list[TokenFacts], prompt: Iterable[PromptFacts], offsets: Offsets
    ) -> dict[str, Any]:
        if self.asked.bare:
            tokens = [(text, value, ()) for text, value, _ in tokens]
        if self.kind == "chat":
            return logprobs.of_chat(tokens)
        return logprobs.of_text(tokens, prompt, offsets)
