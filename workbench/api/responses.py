"""OpenAI's responses route, as far as it is plain text: bodies read, answers and events told.

Nothing is stored: `previous_response_id` is refused, `store` means nothing. Source: OpenAI's API
reference for responses and their streaming events.
"""

import json
from typing import Any

from engine.core.errors import BadInput
from workbench.api.answers import Answer
from workbench.api.requests import Asked, chat
from workbench.live.pieces import Piece

Json = dict[str, Any]
PLAIN = ("temperature", "top_p", "user", "metadata", "store", "service_tier", "model", "stream")
MEANT = {"input", "instructions", "max_output_tokens", "text", "truncation", "parallel_tool_calls"}
EMPTY = {"tools": [], "tool_choice": ("auto", "none"), "truncation": "disabled"}
PARTS = ("input_text", "output_text", "text")


def read(fields: Json) -> Asked:
    """A `/v1/responses` body as the chat it stands for. Raises BadInput."""
    allowed = {*PLAIN, *MEANT, "tools", "tool_choice"}
    unknown = sorted(name for name in set(fields) - allowed if fields[name] is not None)
    if unknown:
        raise BadInput(f"{unknown[0][:40]}: no such field, or not supported; leave it out")
    for name in ("tools", "tool_choice", "truncation"):
        if fields.get(name) not in (None, [], *EMPTY[name]):
            raise BadInput(f"{name}: not supported on this route; ask /v1/chat/completions")
    told = {name: fields[name] for name in PLAIN if name in fields}
    messages = _messages(fields.get("input"))
    rules = fields.get("instructions")
    if rules is not None:
        messages = [{"role": "system", "content": rules}, *messages]
    longest = fields.get("max_output_tokens")
    told |= {} if longest is None else {"max_tokens": longest}
    form = fields.get("text")
    if form is not None and not isinstance(form, dict):
        raise BadInput("text: give an object with its format")
    if form and form.get("format") is not None:
        told["response_format"] = form["format"]
    return chat({**told, "messages": messages})


def _messages(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise BadInput("input: give a text or a list of messages")
    return [_message(item) for item in given]


def _message(item: Any) -> Json:
    if not isinstance(item, dict) or item.get("type", "message") != "message":
        raise BadInput("input: only messages are understood")
    content = item.get("content")
    if isinstance(content, list):
        kinds = [part.get("type") if isinstance(part, dict) else None for part in content]
        if any(kind not in PARTS for kind in kinds):
            raise BadInput("input: only text content is understood")
    return {"role": item.get("role"), "content": content}


def whole(answer: Answer) -> Json:
    """The response object of a finished answer."""
    (choice,) = answer.choices
    cut = choice.reason == "length"
    return _response(answer, "incomplete" if cut else "completed", [_item(answer, choice.text)])


def _response(answer: Answer, status: str, output: list[Json]) -> Json:
    wish, usage = answer.asked.sampling, None
    if output:
        told = answer.usage()
        usage = {
            "input_tokens": told["prompt_tokens"],
            "input_tokens_details": told["prompt_tokens_details"],
            "output_tokens": told["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": told["total_tokens"],
        }
    cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": answer.id, "object": "response", "created_at": answer.created, "status": status,
        "model": answer.model, "output": output, "error": None, "incomplete_details": cut,
        "instructions": None, "metadata": {}, "parallel_tool_calls": False, "tools": [],
        "tool_choice": "none", "temperature": wish.temperature, "top_p": wish.top_p,
        "max_output_tokens": wish.max_tokens, "previous_response_id": None, "store": False,
        "truncation": "disabled", "usage": usage,
    }  # fmt: skip


def _item(answer: Answer, text: str | None, status: str = "completed") -> Json:
    content = [] if text is None else [_part(text)]
    facts = {"id": answer.id.replace("resp", "msg"), "status": status, "content": content}
    return {"type": "message", "role": "assistant", **facts}


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class Narrator:
    """Tells a growing answer as the route's events, numbered from 0."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.number = answer, 0

    def events(self, piece: Piece) -> list[str]:
        """What to send for one piece."""
        answer, told = self.answer, []
        if not self.number:
            for name in ("created", "in_progress"):
                begun = _response(answer, "in_progress", [])
                told.append(self._event(f"response.{name}", response=begun))
            item = _item(answer, None, "in_progress")
            told.append(self._event("response.output_item.added", output_index=0, item=item))
            told.append(self._text("content_part.added", part=_part("")))
        answer.take(piece)
        if piece.refused:
            return [self._event("error", code="invalid_request_error", message=piece.refused)]
        if piece.text:
            told.append(self._text("output_text.delta", delta=piece.text, logprobs=[]))
        if piece.reason:
            text, end = answer.choices[0].text, whole(answer)
            told.append(self._text("output_text.done", text=text, logprobs=[]))
            told.append(self._text("content_part.done", part=_part(text)))
            item = _item(answer, text)
            told.append(self._event("response.output_item.done", output_index=0, item=item))
            told.append(self._event(f"response.{end['status']}", response=end))
        return told

    def _text(self, name: str, **facts: Any) -> str:
        item = self.answer.id.replace("resp", "msg")
        place = {"item_id": item, "output_index": 0, "content_index": 0}
        return self._event(f"response.{name}", **place, **facts)

    def _event(self, name: str, **facts: Any) -> str:
        told = {"type": name, "sequence_number": self.number, **facts}
        self.number += 1
        return f"event: {name}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n"
