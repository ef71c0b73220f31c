"""Answers in the OpenAI shape, made from the engine's pieces. Pure: no sockets, no engine."""

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from workbench.api.requests import Asked
from workbench.live.live import LiveEngine
from workbench.live.pieces import Piece

OBJECTS = {
    "completion": ("cmpl", "text_completion", "text_completion"),
    "chat": ("chatcmpl", "chat.completion", "chat.completion.chunk"),
}


def error(line: str, kind: str) -> dict[str, Any]:
    return {"error": {"message": line, "type": kind, "param": None, "code": None}}


def models(live: LiveEngine) -> dict[str, Any]:
    row = {"id": live.name, "object": "model", "created": live.created, "owned_by": "workbench"}
    return {"object": "list", "data": [row]}


@dataclass
class Choice:
    """One answer growing."""

    text: str = ""
    reason: str | None = None
    tokens: list[tuple[str, float, list[tuple[str, float]]]] = field(default_factory=list)
    begun: bool = False


class Answer:
    """Collects pieces into choices: `whole()` at the end, or `chunks(piece)` as they come."""

    def __init__(self, kind: str, model: str, asked: Asked) -> None:
        prefix, self.object, self.chunk_object = OBJECTS[kind]
        self.kind, self.model, self.asked = kind, model, asked
        self.id, self.created = f"{prefix}-{uuid.uuid4().hex}", int(time.time())
        count = max(1, len(asked.prompts)) * asked.sampling.n
        self.choices = [Choice() for _ in range(count)]
        self.prompt_tokens: dict[int, int] = {}  # by prompt
        self.refused = ""

    @property
    def over(self) -> bool:
        return all(choice.reason is not None for choice in self.choices)

    def take(self, piece: Piece) -> Choice:
        choice = self.choices[piece.index]
        self.prompt_tokens[piece.index // self.asked.sampling.n] = piece.prompt_tokens
        choice.text += piece.text
        if piece.token is not None:
            choice.tokens.append(piece.token)
        if piece.reason:
            choice.reason = piece.reason
            self.refused = self.refused or piece.refused
        return choice

    def whole(self) -> dict[str, Any]:
        return {
            **self._head(self.object),
            "choices": [self._choice(place) for place in range(len(self.choices))],
            "usage": self._usage(),
        }

    def _choice(self, place: int) -> dict[str, Any]:
        choice = self.choices[place]
        shared = {"index": place, "finish_reason": choice.reason, "logprobs": None}
        if self.asked.sampling.logprobs:
            shared["logprobs"] = self._logprobs(choice.tokens)
        if self.kind == "chat":
            return {**shared, "message": {"role": "assistant", "content": choice.text}}
        return {**shared, "text": choice.text}

    def chunks(self, piece: Piece) -> list[dict[str, Any]]:
        """What to send for one piece; nothing for one that completes no text."""
        told = bool(self.refused)
        choice = self.take(piece)
        if not piece.text and not piece.reason and piece.token is None:
            return []
        if piece.refused:
            return [] if told else [error(piece.refused, "invalid_request_error")]
        shared: dict[str, Any] = {"index": piece.index, "finish_reason": piece.reason or None}
        shared["logprobs"] = None
        if self.asked.sampling.logprobs and piece.token is not None:
            shared["logprobs"] = self._logprobs([piece.token])
        if self.kind == "chat":
            role = {} if choice.begun else {"role": "assistant"}
            shared["delta"] = {**role, **({"content": piece.text} if piece.text else {})}
        else:
            shared["text"] = piece.text
        choice.begun = True
        return [{**self._head(self.chunk_object), "choices": [shared]}]

    def usage_chunk(self) -> dict[str, Any]:
        return {**self._head(self.chunk_object), "choices": [], "usage": self._usage()}

    def _head(self, name: str) -> dict[str, Any]:
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}

    def _usage(self) -> dict[str, int]:
        asked, made = sum(self.prompt_tokens.values()), sum(len(c.tokens) for c in self.choices)
        return {"prompt_tokens": asked, "completion_tokens": made, "total_tokens": asked + made}

    def _logprobs(self, tokens: list[tuple[str, float, list[tuple[str, float]]]]) -> dict[str, Any]:
        if self.kind == "chat":
            return {
                "content": [
                    {**_entry(text, value), "top_logprobs": [_entry(*top) for top in tops]}
                    for text, value, tops in tokens
                ]
            }
        return {
            "tokens": [text for text, _, _ in tokens],
            "token_logprobs": [value for _, value, _ in tokens],
            "top_logprobs": [dict(tops) for _, _, tops in tokens],
        }


def _entry(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}
