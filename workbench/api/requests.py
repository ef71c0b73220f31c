"""OpenAI-style request bodies read into what the engine takes. Pure: no sockets, no engine.

Unknown fields are refused rather than ignored, so that nobody believes a setting took effect.
Sources of the field names: OpenAI's API reference for completions and chat completions.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.core.errors import BadInput
from engine.inference.requests.negative_prompt import lacking
from engine.inference.requests.request import Sampling, sampling
from workbench.api.formats import Format, response_format, tools
from workbench.api.json_text import slices, weigh

PROMPTS = 64  # prompts in one request, at most
MESSAGES = 1024
CHARACTERS = 1 << 20  # of all prompts or messages together
STOPS = 16  # texts that end an answer
STOP = 256  # characters of one
BEST = 64  # answers drawn for a prompt of which the best are kept
TOPS = 64  # likeliest tokens that are reported for one of a prompt
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
    "guidance",
    "negative_prompt",
)
NUMBERS = {*SAME, "max_tokens", "max_completion_tokens", "logprobs"} - {
    "ignore_eos",
    "negative_prompt",
}
SHARED = {"stop", "logit_bias", "response_format", "prompt_logprobs"}
IGNORED = {"user", "metadata", "store", "service_tier", "model", "stream", "stream_options"}


@dataclass(frozen=True)
class Asked:
    """What a client asked for. `prompts`: texts or token numbers; `messages` for chat."""

    model: str
    sampling: Sampling
    prompts: tuple[str | tuple[int, ...], ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    form: Format = Format()
    echo: bool = False  # the prompt's text, and its log-probabilities, before the answer's
    suffix: str = ""  # what comes after the answer
    keep: int = 0  # of `sampling.n` answers to a prompt only the likeliest; 0: all
    scores: int = -1  # likeliest tokens to report for each token of the prompt; -1: none
    empty: bool = False  # nothing but the prompt is wanted (max_tokens 0)
    bare: bool = False  # log-probabilities of what is told, and of no likeliest token beside it
    stream: bool = False
    usage: bool = False  # a last streamed chunk with the token counts
    user: str = ""

    def numbers(self, lengths: Sequence[int], context: int) -> int:
        """Log-probabilities there are to tell, at most, for prompts of `lengths` tokens."""
        wish, room = self.sampling, [max(0, context - length) for length in lengths]
        longest = sum(min(wish.max_tokens, left) for left in room) * wish.n
        own = longest * (wish.logprobs + 1) if wish.logprobs else 0
        return own + sum(lengths) * (self.scores + 1)


def completion(fields: dict[str, Any]) -> Asked:
    """A `/v1/completions` body. Raises BadInput naming the first field that is wrong."""
    known = {"prompt", "max_tokens", "logprobs", "echo", "suffix", "best_of"}
    _refuse_unknown(fields, known)
    suffix = fields.get("suffix") or ""
    if not isinstance(suffix, str) or len(suffix) > CHARACTERS:
        raise BadInput(f"suffix: give a text of at most {CHARACTERS} characters")
    echo, tops = fields.get("echo") or False, fields.get("logprobs") or 0
    if not isinstance(echo, bool):
        raise BadInput("echo: give true or false")
    if echo and suffix:
        raise BadInput("echo: not together with suffix; leave out one of them")
    prompts, more = read_prompts(fields.get("prompt")), _common(fields)
    scores = _scores(fields, more["stream"])
    if echo and fields.get("logprobs") is not None and type(tops) is int:
        scores = max(scores, tops)
    longest = fields.get("max_tokens", 16)
    empty = longest == 0 and type(longest) is int and (echo or scores >= 0)
    drawn, keep = _best_of(fields, more["stream"])
    bare = not tops and type(fields.get("logprobs")) is int
    made = _sampling({**fields, **drawn}, 1 if empty else longest, 1 if bare else tops)
    more |= {"echo": echo, "suffix": suffix, "scores": scores, "empty": empty, "keep": keep}
    more["bare"] = bare
    return Asked(prompts=prompts, sampling=made, form=response_format(fields), **more)


def _best_of(fields: dict[str, Any], stream: bool) -> tuple[dict[str, int], int]:
    """How many answers are drawn for a prompt, and how many of them are kept (0: all)."""
    best, keep = fields.get("best_of"), fields.get("n") or 1
    if best is None or best == keep or type(keep) is not int:
        return {}, 0
    if type(best) is not int or not keep < best <= BEST:
        raise BadInput(f"best_of: give a number from n up to {BEST}")
    if stream:
        raise BadInput("best_of: which answer is best is known at its end; leave out stream")
    return {"n": best}, keep


def _scores(fields: dict[str, Any], stream: bool) -> int:
    """How many likeliest tokens to report for each token of the prompt; -1: nothing."""
    asked = fields.get("prompt_logprobs")
    if asked is None:
        return -1
    if type(asked) is not int or not 0 <= asked <= TOPS:
        raise BadInput(f"prompt_logprobs: give a number from 0 to {TOPS}")
    if stream:
        raise BadInput("prompt_logprobs: cannot be streamed; leave out one of them")
    return asked


def chat(fields: dict[str, Any]) -> Asked:
    """A `/v1/chat/completions` body. Raises BadInput naming the first field that is wrong."""
    known = {"messages", "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs"}
    _refuse_unknown(fields, known | {"tools", "tool_choice", "parallel_tool_calls"})
    wanted = fields.get("logprobs") or False
    if not isinstance(wanted, bool):
        raise BadInput("logprobs: give true or false")
    bare = wanted and not fields.get("top_logprobs")
    if fields.get("top_logprobs") and not wanted:
        raise BadInput("top_logprobs: needs logprobs true; give it, or leave out both")
    tops = (fields.get("top_logprobs") or 1) if wanted else 0
    longest = fields.get("max_completion_tokens", fields.get("max_tokens", 256))
    made = _sampling(fields, longest, tops)
    more = _common(fields)
    more |= {"form": tools(fields), "scores": _scores(fields, more["stream"]), "bare": bare}
    return Asked(messages=read_messages(fields.get("messages")), sampling=made, **more)


def _refuse_unknown(fields: dict[str, Any], known: set[str]) -> None:
    allowed = known | IGNORED | set(SAME) | SHARED
    unknown = sorted(set(fields) - allowed)
    named = [name for name in unknown if name in ("guidance_scale", "cfg_scale")]
    if named:
        raise BadInput(f"{named[0]}: classifier-free guidance is called guidance here")
    if unknown:
        raise BadInput(f"{unknown[0][:40]}: no such field, or not supported; leave it out")


def read_user(fields: dict[str, Any]) -> str:
    """Who asks, as the client says. Raises BadInput."""
    user = fields.get("user") or ""
    if not isinstance(user, str) or len(user) > 256:
        raise BadInput("user: give a text of at most 256 characters")
    return user


def _common(fields: dict[str, Any]) -> dict[str, Any]:
    model, user = fields.get("model"), read_user(fields)
    if not isinstance(model, str):
        raise BadInput("model: give a model's name; GET /v1/models lists them")
    stream = fields.get("stream") or False
    options = {} if fields.get("stream_options") is None else fields["stream_options"]
    if not isinstance(stream, bool) or not isinstance(options, dict):
        raise BadInput("stream: give true or false, and stream_options as an object")
    if not isinstance(usage := options.get("include_usage") or False, bool):
        raise BadInput("stream_options: give include_usage true or false")
    return {
        "model": model,
        "user": user,
        "stream": stream,
        "usage": usage,
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
    wish = sampling(
        **made,
        max_tokens=16 if longest is None else longest,
        logprobs=tops,
        stop=(stop,) if isinstance(stop, str) else stop,
        logit_bias=[(int(token), value) for token, value in bias.items()],
    )
    if wish.min_tokens > wish.max_tokens:
        raise BadInput(f"min_tokens: {wish.min_tokens}, of max_tokens {wish.max_tokens} at most")
    if wrong := lacking(wish):
        raise BadInput(wrong)
    return wish


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


def read_prompts(prompt: Any, name: str = "prompt") -> tuple[str | tuple[int, ...], ...]:
    """Texts or token numbers, one or many, of the field `name`. Raises BadInput."""
    wrong = f"{name}: give a text, a list of texts, token numbers, or a list of those"
    if isinstance(prompt, str) or (isinstance(prompt, list) and is_numbers(prompt)):
        prompt = [prompt]
    if not isinstance(prompt, list) or not prompt:
        raise BadInput(wrong)
    if len(prompt) > PROMPTS:
        raise BadInput(f"{name}: {len(prompt)} of them; at most {PROMPTS} in one request")
    if not all(isinstance(p, str) or (isinstance(p, list) and is_numbers(p)) for p in prompt):
        raise BadInput(wrong)
    if not all(prompt):
        raise BadInput(f"{name}: empty; give at least one character or token")
    _check_length(sum(len(p) for p in prompt))
    return tuple(p if isinstance(p, str) else tuple(p) for p in prompt)


def is_numbers(values: list[Any]) -> bool:
    """Whether these are token numbers; Python would take JSON's true for 1."""
    return bool(values) and all(
        set(map(type, some)) == {int} and min(some) >= 0 and max(some) < 1 << 31
        for some in slices(values)
    )


def read_messages(messages: Any) -> tuple[dict[str, Any], ...]:
    """A chat's messages as templates take them. Raises BadInput."""
    if not isinstance(messages, list) or not messages:
        raise BadInput("messages: give a list of objects with role and content")
    if len(messages) > MESSAGES:
        raise BadInput(f"messages: {len(messages)} of them; at most {MESSAGES}")
    read = tuple(_message(message) for message in messages)
    _check_length(sum(len(message["content"]) for message in read))
    return read


def _message(message: Any) -> dict[str, Any]:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise BadInput("messages: each needs a role: system, user, assistant or tool")
    content, more = message.get("content"), {}
    if role == "assistant" and message.get("tool_calls"):
        content, more = content or "", {"tool_calls": _calls(message["tool_calls"])}
    if role == "tool":
        more = {"tool_call_id": str(message.get("tool_call_id", ""))[:64]}
    if isinstance(content, list):  # parts; only those of text are understood
        texts = [part.get("text") if isinstance(part, dict) else None for part in content]
        if not all(isinstance(text, str) for text in texts):
            raise BadInput("messages: only text content is understood")
        content = "".join(texts)
    if not isinstance(content, str):
        raise BadInput("messages: each needs its content as text")
    return {"role": "system" if role == "developer" else role, "content": content, **more}


def _calls(calls: Any) -> list[dict[str, Any]]:
    """Calls of an earlier answer as templates take them: arguments as an object."""
    wrong = "messages: tool_calls is a list of calls, each a function with name and arguments"
    found = []
    for call in calls if isinstance(calls, list) else [None]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadInput(wrong)
        given = function.get("arguments") or "{}"
        if isinstance(given, str):
            weigh(given.encode(), "messages: arguments")
        try:
            arguments = json.loads(given)
        except (ValueError, TypeError, RecursionError):
            raise BadInput(wrong) from None
        named = {"name": function["name"], "arguments": arguments}
        found.append({"id": str(call.get("id", ""))[:64], "type": "function", "function": named})
    return found


def _check_length(characters: int) -> None:
    if characters > CHARACTERS:
        raise BadInput(f"prompt: {characters} characters; at most {CHARACTERS}")
