"""JSON read and written so that other threads come in between.

The library keeps Python's lock from a text's begin to its end, and with it everything else that
this process does: what it reads is bounded, what it writes is written piece by piece.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import check
from engine.core.writing import json_text

NUMBERS = 8  # that take as long to read as one text
TOGETHER = 512  # entries written in one go
LONG = 1 << 15  # characters of a text that is read by its parts
STEP = 1 << 14  # characters of a list that are read, entries that are looked at, in one go
DEEP = 5  # levels that are taken apart: to a token's log-probabilities, not within them
# Seconds, about as long as a piece takes. A thread that only ever yields Python's lock when asked
# keeps the engine's waiting each time that one wants it back.
REST = 5e-4
LISTS = 2  # levels of lists read in pieces: prompts of token numbers
READER = json.JSONDecoder()
BLANKS = re.compile(r"[ \t\n\r]*")
BARE = re.compile(r'[^"\[\]{}]+')  # numbers, null, true: no text, list or object


def weigh(text: bytes, what: str = "body") -> None:
    """Raises BadInput for JSON over the limit `body_entries`: of texts, lists, objects and, eight
    for one, numbers. What looks like them within a text is counted too."""
    texts = (text.count(b'"') - text.count(b'\\"')) // 2
    entries = texts + text.count(b"[") + text.count(b"{") + text.count(b",") // NUMBERS
    check(what, "texts, lists, objects and eights of numbers", entries, "body_entries")


def read_json(body: bytes) -> dict[str, Any]:
    """The body as a JSON object. Raises BadInput."""
    weigh(body)
    text = ""
    try:
        text = body.decode("utf-8")
        found = json.loads(text) if len(text) < LONG else _read_long(text)
        if b"\\u" in body:  # half a surrogate pair is no text
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"body: {_why(fault, text)}") from None
    if not isinstance(found, dict):
        raise BadInput("body: not a JSON object")
    return found


def _why(fault: Exception, text: str) -> str:
    """What is wrong with a text that could not be read, and where, if that is known."""
    if isinstance(fault, UnicodeDecodeError):
        return f"not JSON in UTF-8: byte {fault.start} is none"
    if isinstance(fault, UnicodeEncodeError):
        return "half a surrogate pair (\\ud800 to \\udfff) is no text; send both or neither"
    if isinstance(fault, RecursionError):
        return "nested too deep; at most some 990 levels"
    if isinstance(fault, json.JSONDecodeError):
        where = f" at character {fault.pos}" if fault.doc is text else ""  # no piece of it
        return f"not JSON: {fault.msg[:60].lower()}{where}"
    return "not JSON" if "digit" not in str(fault) else "a number has over 4,300 digits; shorten it"


def _read_long(text: str) -> Any:
    """What `json.loads` makes of it. Of an object its fields are read one by one, of lists in them
    what is no text, list or object a piece at a time: a million numbers take a tenth of a
    second. Of some 990 levels of nesting it takes a few fewer."""
    at = _after(text, 0)
    if text[at : at + 1] != "{":
        return json.loads(text)
    found, at = dict[str, Any](), _after(text, at + 1)
    ends = text[at : at + 1] == "}"
    while not ends:
        if text[at : at + 1] != '"':
            raise ValueError("no name")
        name, at = READER.raw_decode(text, at)
        at = _after(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("no colon")
        found[name], at = _value(text, _after(text, at + 1), LISTS)
        at, ends = _next(text, at, "}")
    if _after(text, at + 1) != len(text):
        raise ValueError("more than one value")
    return found


def _value(text: str, at: int, deep: int) -> tuple[Any, int]:
    """The value that begins there, and where it ends; lists `deep` levels down in pieces."""
    if not deep or text[at : at + 1] != "[":
        return READER.raw_decode(text, at)
    found, at = list[Any](), _after(text, at + 1)
    ends = text[at : at + 1] == "]"
    while not ends:
        bare = BARE.match(text, at, at + STEP)
        cut = text.rfind(",", at, bare.end()) if bare else -1
        if cut > at:
            found += json.loads(f"[{text[at:cut]}]")
            time.sleep(REST)
            at = _after(text, cut + 1)
        one, at = _value(text, at, deep - 1)
        found.append(one)
        at, ends = _next(text, at, "]")
    return found, at + 1


def _next(text: str, at: int, end: str) -> tuple[int, bool]:
    """Where the entry behind a comma begins; or where `end` stands, and that it does."""
    at = _after(text, at)
    if text[at : at + 1] not in (",", end):
        raise ValueError("no comma")
    return (at, True) if text[at] == end else (_after(text, at + 1), False)


def _after(text: str, at: int) -> int:
    """Where the blanks that stand there end."""
    found = BLANKS.match(text, at)
    return found.end() if found else at


def slices(values: list[Any]) -> Iterator[list[Any]]:
    """Of a list of up to a million entries some thousands at a time, others' turn in between."""
    for at in range(0, len(values), STEP):
        if at:
            time.sleep(REST)
        yield values[at : at + STEP]


def write_json(value: Any, ascii: bool = True) -> str:
    """The same text as of `json_text`; an iterator is written as a list is."""
    return "".join(_written(value, DEEP, ascii))


def write_parts(value: Any) -> list[bytes]:
    """The same text in parts, each little enough to be sent in one go. For a thread of its own."""
    parts, held, size = [], list[str](), 0
    for piece in _written(value, DEEP, True):
        held.append(piece)
        size += len(piece)
        if size >= LONG:
            parts.append("".join(held).encode())
            held, size = [], 0
            time.sleep(REST)
    return [*parts, "".join(held).encode()] if held else parts


def _written(value: Any, deep: int, ascii: bool) -> Iterator[str]:
    """The text piece by piece; of what is nested deeper than `deep` each value is one piece."""
    whole = partial(json_text, ensure_ascii=ascii)
    if isinstance(value, str) and len(value) > LONG:
        yield '"'
        for at in range(0, len(value), LONG):
            yield whole(value[at : at + LONG])[1:-1]
        yield '"'
    elif isinstance(value, dict) and deep > 1 and value:
        for at, (name, held) in enumerate(value.items()):
            yield f"{', ' if at else '{'}{whole(str(name))}: "
            yield from _written(held, deep - 1, ascii)
        yield "}"
    elif isinstance(value, Iterator) or (isinstance(value, list) and deep and value):
        yield from _listed(value, deep - 1, ascii)
    else:
        yield whole(value)


def _listed(values: Iterable[Any], deep: int, ascii: bool) -> Iterator[str]:
    """A list: lists, objects and long texts in it one by one, what stands between together."""
    begun, some = "[", list[Any]()
    for value in values:
        apart = isinstance(value, dict | list) or (isinstance(value, str) and len(value) > LONG)
        if some and (apart or len(some) == TOGETHER):
            yield begun + json_text(some, ensure_ascii=ascii)[1:-1]
            begun, some = ", ", []
        if apart:
            yield begun
            yield from _written(value, deep, ascii)
            begun = ", "
        else:
            some.append(value)
    if some:
        yield begun + json_text(some, ensure_ascii=ascii)[1:-1]
    yield "[]" if begun == "[" and not some else "]"
