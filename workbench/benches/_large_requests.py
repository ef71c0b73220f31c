"""Request bodies that are as large, or ask for as much, as a client can make them."""

import json
from collections.abc import Callable
from typing import Any

Asked = tuple[str, dict[str, Any]]  # a route, and the body's fields without the model's name
MOST = 3_700_000  # bytes of a body, about; over 4 MiB it is refused unread


def _deep(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


def _said(**more: Any) -> Asked:
    return "/v1/completions", {"prompt": "abc", "max_tokens": 2, **more}


def _talked(*texts: str, **more: Any) -> Asked:
    messages = [{"role": "user", "content": text} for text in texts]
    return "/v1/chat/completions", {"messages": messages, "max_tokens": 2, **more}


def _many(n: int) -> int:
    """Prompts of one request, which takes 64."""
    return max(1, min(n // 50_000, 64))


def _schema(count: int) -> dict[str, Any]:
    fields = {f"p{at}": {"type": "integer"} for at in range(count)}
    return {"type": "json_schema", "json_schema": {"schema": {"properties": fields}}}


def _tool(place: int) -> dict[str, Any]:
    fields = {f"p{at}": {"type": "string"} for at in range(80)}
    parameters = {"type": "object", "properties": fields}
    return {"type": "function", "function": {"name": f"f{place}", "parameters": parameters}}


def _biases() -> dict[str, float]:
    return {str(token): 0.01 for token in range(1024)}


KINDS: dict[str, Callable[[int], Asked]] = {  # each by how many bytes, about
    "a prompt": lambda n: _said(prompt="ab c" * (n // 4)),
    "prompts": lambda n: _said(prompt=["ab " * (n // 192)] * 64),
    "token numbers": lambda n: _said(prompt=[7] * (n // 3)),
    "many short prompts": lambda n: _said(prompt=["a"] * (n // 5)),
    "stop texts": lambda n: _said(stop=["x"] * (n // 5)),
    "one stop text": lambda n: _said(stop="x" * n),
    "logit bias": lambda n: _said(logit_bias={str(at): 1 for at in range(n // 12)}),
    "a negative prompt": lambda n: _said(guidance=2.0, negative_prompt="ab " * (n // 3)),
    "a suffix": lambda n: _said(suffix="ab " * (n // 3)),
    "a schema": lambda n: _said(response_format=_schema(n // 30)),
    "log-probabilities": lambda n: _said(  # as many as may be asked for
        prompt=[[7] * 63] * 64, prompt_logprobs=min(n // 60_000, 62), max_tokens=1),
    "numbers with points": lambda n: _said(user=[1.5] * (n // 5)),
    "lists in lists": lambda n: _said(user=_deep(min(n // 2, 900))),
    "unknown fields": lambda n: _said(**{f"f{at}": 1 for at in range(n // 11)}),
    "a name": lambda n: ("/v1/completions", {"model": "x" * n, "prompt": "a"}),
    "a message": lambda n: _talked("ab " * (n // 3)),
    "messages": lambda n: _talked(*(["a"] * (n // 40))),
    "tools": lambda n: _talked("a", tools=[
        {"type": "function", "function": {"name": f"f{at}"}} for at in range(n // 60)]),
    "letters of four bytes": lambda n: _said(prompt="\U0001f600" * (n // 12)),
    "to tokenize": lambda n: ("/tokenize", {"prompt": "ab c" * (n // 4)}),
    "to detokenize": lambda n: ("/detokenize", {"tokens": [7] * min(n // 3, 1_045_000)}),
    "to embed": lambda n: ("/v1/embeddings", {"input": ["ab " * (n // 192)] * 64}),
    "a full cache": lambda n: _said(  # as served, its pages are short before it is half done
        prompt=[[7] * 60] * _many(n), max_tokens=100, ignore_eos=True),
    "token numbers to embed": lambda n: ("/v1/embeddings", {"input": [[7] * 500] * _many(n)}),
    "to respond to": lambda n: ("/v1/responses", {"input": "ab " * (n // 3)}),
    # Those that are not refused: as much as may be asked for.
    "as many token numbers": lambda n: _said(prompt=[7] * min(n // 3, 1_045_000)),
    "as many messages": lambda n: _talked(*(["a"] * min(n // 40, 1000))),
    "as many tools": lambda n: _talked("a", tools=[_tool(at) for at in range(min(n // 1500, 24))]),
    "a schema in a small body": lambda n: _said(response_format=_schema(min(n // 30, 400))),
    "a prompt said again": lambda n: _said(
        prompt=[[7] * 63] * _many(n), logprobs=60, echo=True, stream=True, max_tokens=1),
    "samples of many prompts": lambda n: _said(
        prompt=[[7] * 8] * _many(n), n=64, max_tokens=1, ignore_eos=True),
    "all there is of samples": lambda n: _said(
        n=_many(n), logprobs=60, max_tokens=24, ignore_eos=True, temperature=1.0, top_p=0.9,
        repetition_penalty=1.1, presence_penalty=0.1, frequency_penalty=0.1, logit_bias=_biases(),
        stop=[("ab " * 90)[at : at + 255] for at in range(16)]),
}  # fmt: skip


def body(model: str, fields: dict[str, Any]) -> bytes:
    """What is sent."""
    return json.dumps({"model": model, **fields}).encode()
