"""The OpenAPI document of the server: its routes, their bodies and what they answer."""

from typing import Any

from workbench.api.requests import BEST, CHARACTERS, MESSAGES, PROMPTS, STOP, STOPS, TOPS

Json = dict[str, Any]


def _number(low: float, high: float, kind: str = "number") -> Json:
    return {"type": kind, "minimum": low, "maximum": high}


TEXT = {"type": "string", "minLength": 1, "maxLength": CHARACTERS}
NUMBERS = {"type": "array", "items": _number(0, (1 << 31) - 1, "integer"), "minItems": 1}
MANY = {"type": "array", "items": {"anyOf": [TEXT, NUMBERS]}, "minItems": 1, "maxItems": PROMPTS}
INPUT = {"anyOf": [TEXT, NUMBERS, MANY]}
FLAG: Json = {"type": "boolean"}
USER = {"type": "string", "maxLength": 256}
ANY: Json = {"type": "object"}
SCHEMA = {"type": "object", "properties": {"schema": ANY, "name": {"type": "string"}}}
FORMAT = {
    "type": "object",
    "properties": {
        "type": {"enum": ["text", "json_object", "json_schema"]},
        "json_schema": {**SCHEMA, "required": ["schema"]},
    },
    "required": ["type"],
}
STOP_TEXT = {"type": "string", "minLength": 1, "maxLength": STOP}
SAMPLING: Json = {
    "temperature": _number(0, 10),
    "top_p": _number(1e-9, 1),
    "top_k": _number(0, 1 << 20, "integer"),
    "min_p": _number(0, 1),
    "seed": _number(0, 2**63 - 1, "integer"),
    "n": _number(1, 1024, "integer"),
    "presence_penalty": _number(-10, 10),
    "frequency_penalty": _number(-10, 10),
    "repetition_penalty": _number(0.01, 10),
    "min_tokens": _number(0, 1 << 24, "integer"),
    "ignore_eos": FLAG,
    "stop": {"anyOf": [STOP_TEXT, {"type": "array", "items": STOP_TEXT, "maxItems": STOPS}]},
    "logit_bias": {"type": "object", "additionalProperties": _number(-100, 100)},
    "guidance": _number(0, 100),
    "negative_prompt": {"type": "string"},
    "response_format": FORMAT,
    "prompt_logprobs": _number(0, TOPS, "integer"),
    "stream": FLAG,
    "stream_options": {"type": "object", "properties": {"include_usage": FLAG}},
    "user": USER,
}
MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
        "content": {"type": "string"},
    },
    "required": ["role", "content"],
}
TALK = {"type": "array", "items": MESSAGE, "minItems": 1, "maxItems": MESSAGES}
FUNCTION = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 64}, "parameters": ANY},
    "required": ["name"],
}
TOOL = {"type": "object", "properties": {"type": {"const": "function"}, "function": FUNCTION}}
COMPLETION: Json = {
    "prompt": INPUT,
    "max_tokens": _number(1, 1 << 24, "integer"),
    "logprobs": _number(0, 64, "integer"),
    "echo": FLAG,
    "suffix": {"type": "string", "maxLength": CHARACTERS},
    "best_of": _number(1, BEST, "integer"),
    **SAMPLING,
}
CHAT: Json = {
    "messages": TALK,
    "max_tokens": _number(1, 1 << 24, "integer"),
    "max_completion_tokens": _number(1, 1 << 24, "integer"),
    "logprobs": FLAG,
    "top_logprobs": _number(0, 64, "integer"),
    "tools": {"type": "array", "items": {**TOOL, "required": ["function"]}, "maxItems": 128},
    "tool_choice": {"anyOf": [{"enum": ["none", "auto", "required"]}, ANY]},
    **SAMPLING,
}
RESPONSE: Json = {
    "input": {"anyOf": [TEXT, TALK]},
    "instructions": {"type": "string"},
    "max_output_tokens": _number(1, 1 << 24, "integer"),
    "temperature": _number(0, 10),
    "top_p": _number(1e-9, 1),
    "stream": FLAG,
    "user": USER,
}
EMBEDDING: Json = {
    "input": INPUT,
    "encoding_format": {"enum": ["float", "base64"]},
    "dimensions": _number(1, 1 << 24, "integer"),
    "user": USER,
}
TOKENIZE: Json = {
    "prompt": {"type": "string", "maxLength": CHARACTERS},
    "messages": TALK,
    "add_special_tokens": FLAG,
    "return_token_strs": FLAG,
}
DETOKENIZE: Json = {"tokens": {**NUMBERS, "minItems": 0}}


def document(model: str) -> Json:
    """OpenAPI 3.1 of a server of that model."""
    bodies = {
        "/v1/completions": ("Complete texts", COMPLETION, ["prompt"]),
        "/v1/chat/completions": ("Answer a chat", CHAT, ["messages"]),
        "/v1/responses": ("Answer as plain text", RESPONSE, ["input"]),
        "/v1/embeddings": ("Embed texts", EMBEDDING, ["input"]),
        "/tokenize": ("Token numbers of a text or chat", TOKENIZE, []),
        "/detokenize": ("The text of token numbers", DETOKENIZE, ["tokens"]),
    }
    paths: Json = {
        path: {"post": _asked(model, *facts)} for path, facts in bodies.items()
    }  # fmt: skip
    paths |= {
        "/v1/models": {"get": _told("The models served")},
        "/v1/models/{model}": {"get": _told("One model", [_named(model)])},
        "/health": {"get": _told("Whether the engine answers")},
        "/metrics": {"get": _told("Counts for Prometheus", kind="text/plain")},
        "/openapi.json": {"get": _told("This document")},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Parallel Workbench", "version": "1"},
        "paths": paths,
    }


def _named(model: str) -> Json:
    schema = {"type": "string", "enum": [model]}
    return {"name": "model", "in": "path", "required": True, "schema": schema}


def _answers(kind: str) -> Json:
    said = {"description": "the answer", "content": {kind: {}}}
    wrong = {"description": "one line on what is wrong", "content": {"application/json": {}}}
    return {"200": said, **{str(code): wrong for code in (400, 401, 403, 404, 413, 415, 429, 503)}}


def _told(about: str, parameters: list[Json] | None = None, kind: str = "application/json") -> Json:
    return {"summary": about, "parameters": parameters or [], "responses": _answers(kind)}


def _asked(model: str, about: str, fields: Json, required: list[str]) -> Json:
    schema = {
        "type": "object",
        "properties": {"model": {"const": model}, **fields},
        "required": [*(["model"] if "prompt" not in fields or required else []), *required],
        "additionalProperties": False,
    }
    found = _told(about)
    found["responses"]["200"]["content"]["text/event-stream"] = {}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {**found, "requestBody": body}
