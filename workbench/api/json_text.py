"""JSON read and written so that other threads come in between.

The library keeps Python's lock from a text's begin to its end, and with it everything else that
this process does: what it reads is bounded, what it writes is written piece by piece.
"""

import json
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import check

NUMBERS = 8  # that take as long to read as one text
TOGETHER = 512  # entries written in one go
DEEP = 5  # levels that are taken apart: to a token's log-probabilities, not within them


def weigh(text: bytes, what: str = "body") -> None:
    """Raises BadInput for JSON over the limit `body_entries`: of texts, lists, objects and, eight
    for one, numbers. What looks like them within a text is counted too."""
    texts = (text.count(b'"') - text.count(b'\\"')) // 2
    entries = texts + text.count(b"[") + text.count(b"{") + text.count(b",") // NUMBERS
    check(what, "texts, lists, objects and eights of numbers", entries, "body_entries")


def read_json(body: bytes) -> dict[str, Any]:
    """The body as a JSON object. Raises BadInput."""
    weigh(body)
    try:
        found = json.loads(body.decode("utf-8"))
        if b"\\u" in body:  # half a surrogate pair is no text
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise BadInput("body: not JSON") from None
    if not isinstance(found, dict):
        raise BadInput("body: not a JSON object")
    return found


def write_json(value: Any, deep: int = DEEP) -> str:
    """The same text as `json.dumps`."""
    if not deep or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    if isinstance(value, dict):
        told = (f"{json.dumps(str(k))}: {write_json(v, deep - 1)}" for k, v in value.items())
        return "{" + ", ".join(told) + "}"
    if isinstance(value[0], dict | list):
        return "[" + ", ".join(write_json(one, deep - 1) for one in value) + "]"
    parts = (value[at : at + TOGETHER] for at in range(0, len(value), TOGETHER))
    return "[" + ", ".join(json.dumps(part)[1:-1] for part in parts) + "]"
