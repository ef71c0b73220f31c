"""OpenAI-style request bodies read into what the engine takes. Pure: no sockets, no engine.

Unknown fields are refused rather than ignored, so that nobody believes a setting took effect.
Sources of the field names: OpenAI's API reference for completions and chat completions.
"""

import json
from dataclasses import dataclass
from typing import Any

from engine.core.errors import BadInput
from engine.inference.requests.request import Sampling, sampling

PROMPTS = 64  # prompts in one request, at most
MESSAGES = 1024
CHARACTERS = 1 << 20  # of all prompts or messages together
STOPS = 16  # texts that end an answer
STOP = 256  # characters of one
BIASES = 1024  # tokens of a logit bias
SAME = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
)
NUMBERS = {*SAME, "max_tokens", "max_completion_tokens", "logprobs"} - {"ignore_eos"}
IGNORED = {"user", "metadata", "store", "service_tier", "model", "stream", "stream_options"}


@dataclass(frozen=True)
class Asked:
    """What a client asked for. `prompts`: texts or token numbers; `messages` for chat."""

    model: str
    sampling: Sampling
    prompts: tuple[str | tuple[int, ...], ...] = ()
    messages: tuple[dict[str, str], ...] = ()
    stream: bool = False
    usage: bool = False  # a last streamed chunk with the token counts
    user: str = ""


def read_json(body: bytes) -> dict[str, Any]:
    """The body as a JSON object. Raises BadInput."""
    try:
        found = json.loads(body.decode("utf-8"))
        if b"\\u" in body:  # half a surrogate pair is no text
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise BadInput("body: not JSON") from None
    if not isinstance(found, dict):
        raise BadInput("body: not a JSON object")
    return found


def completion(fields: dict[str, Any]) -> Asked:
    """A `/v1/completions` body. Raises BadInput naming the first field that is wrong."""
    known = {"prompt", "max_tokens", "logprobs", "echo", "suffix", "best_of"}
    _refuse_unknown(fields, known)
    for name, plain in (("echo", False), ("suffix", None), ("best_of", fields.get("n", 1))):
        if fields.get(name, plain) not in (plain, None):
            raise BadInput(f"{name}: not supported; leave it out")
    tops = fields.get("logprobs") or 0
    made = _sampling(fields, fields.get("max_tokens", 16), tops)
    return Asked(prompts=_prompts(fields.get("prompt")), sampling=made, **_common(fields))


def chat(fields: dict[str, Any]) -> Asked:
    """A `/v1/chat/completions` body. Raises BadInput naming the first field that is wrong."""
    known = {"messages", "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs"}
    _refuse_unknown(fields, known)
    wanted = fields.get("logprobs") or False
    if not isinstance(wanted, bool):
        raise BadInput("logprobs: give true or false")
    tops = (fields.get("top_logprobs") or 1) if wanted else 0
    longest = fields.get("max_completion_tokens", fields.get("max_tokens", 256))
    made = _sampling(fields, longest, tops)
    return Asked(messages=_messages(fields.get("messages")), sampling=made, **_common(fields))


def _refuse_unknown(fields: dict[str, Any], known: set[str]) -> None:
    allowed = known | IGNORED | set(SAME) | {"stop", "logit_bias"}
    unknown = sorted(set(fields) - allowed)
    if unknown:
        raise BadInput(f"{unknown[0][:40]}: no such field, or not supported; leave it out")


def _common(fields: dict[str, Any]) -> dict[str, Any]:
    model, user = fields.get("model"), fields.get("user") or ""
    if not isinstance(model, str):
        raise BadInput("model: give a model's name; GET /v1/models lists them")
    if not isinstance(user, str) or len(user) > 256:
        raise BadInput("user: give a text of at most 256 characters")
    stream = fields.get("stream") or False
    options = fields.get("stream_options") or {}
    if not isinstance(stream, bool) or not isinstance(options, dict):
        raise BadInput("stream: give true or false, and stream_options as an object")
    return {
        "model": model,
        "user": user,
        "stream": stream,
        "usage": bool(options.get("include_usage", False)),
    }


def _sampling(fields: dict[str, Any], longest: Any, tops: Any) -> Sampling:
    for name, value in {**fields, "max_tokens": longest, "logprobs": tops}.items():
        if name in NUMBERS and (isinstance(value, (bool, str))):  # Python takes true for 1
            raise BadInput(f"{name}: give a number")
    made = {name: fields[name] for name in SAME if fields.get(name) is not None}
    made.setdefault("temperature", 1.0)
    stop = fields.get("stop") or ()
    _check_stops([stop] if isinstance(stop, str) else stop if isinstance(stop, list) else [])
    bias = fields.get("logit_bias") or {}
    if isinstance(bias, dict) and len(bias) > BIASES:
        raise BadInput(f"logit_bias: {len(bias)} tokens; at most {BIASES}")
    if not isinstance(bias, dict) or not all(map(_bias, bias.items())):
        raise BadInput("logit_bias: give an object of token number to bias")
    return sampling(
        **made,
        max_tokens=16 if longest is None else longest,
        logprobs=tops,
        stop=(stop,) if isinstance(stop, str) else stop,
        logit_bias=[(int(token), value) for token, value in bias.items()],
    )


def _check_stops(stops: list[Any]) -> None:
    """Every token of an answer is compared with all of them."""
    if "" in stops:
        raise BadInput("stop: an empty text would end every answer; leave it out")
    if len(stops) > STOPS:
        raise BadInput(f"stop: {len(stops)} texts; at most {STOPS}")
    if any(isinstance(stop, str) and len(stop) > STOP for stop in stops):
        raise BadInput(f"stop: a text of over {STOP} characters; shorten it")


def _bias(pair: tuple[str, Any]) -> bool:
    token, value = pair
    number = token.isascii() and token.isdigit() and len(token) < 10
    return number and type(value) in (int, float)


def _prompts(prompt: Any) -> tuple[str | tuple[int, ...], ...]:
    wrong = "prompt: give a text, a list of texts, token numbers, or a list of those"
    if isinstance(prompt, str) or (isinstance(prompt, list) and _numbers(prompt)):
        prompt = [prompt]
    if not isinstance(prompt, list) or not prompt:
        raise BadInput(wrong)
    if len(prompt) > PROMPTS:
        raise BadInput(f"prompt: {len(prompt)} of them; at most {PROMPTS} in one request")
    if not all(isinstance(p, str) or (isinstance(p, list) and _numbers(p)) for p in prompt):
        raise BadInput(wrong)
    if not all(prompt):
        raise BadInput("prompt: empty; give at least one character or token")
    _check_length(sum(len(p) for p in prompt))
    return tuple(p if isinstance(p, str) else tuple(p) for p in prompt)


def _numbers(values: list[Any]) -> bool:
    """Whether these are token numbers; Python would take JSON's true for 1."""
    return bool(values) and all(type(v) is int and 0 <= v < 1 << 31 for v in values)


def _messages(messages: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(messages, list) or not messages:
        raise BadInput("messages: give a list of objects with role and content")
    if len(messages) > MESSAGES:
        raise BadInput(f"messages: {len(messages)} of them; at most {MESSAGES}")
    read = tuple(_message(message) for message in messages)
    _check_length(sum(len(message["content"]) for message in read))
    return read


def _message(message: Any) -> dict[str, str]:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant"):
        raise BadInput("messages: each needs a role: system, user or assistant")
    content = message.get("content")
    if isinstance(content, list):  # parts; only those of text are understood
        texts = [part.get("text") if isinstance(part, dict) else None for part in content]
        if not all(isinstance(text, str) for text in texts):
            raise BadInput("messages: only text content is understood")
        content = "".join(texts)
    if not isinstance(content, str):
        raise BadInput("messages: each needs its content as text")
    return {"role": "system" if role == "developer" else role, "content": content}


def _check_length(characters: int) -> None:
    if characters > CHARACTERS:
        raise BadInput(f"prompt: {characters} characters; at most {CHARACTERS}")
