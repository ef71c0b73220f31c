"""What may be wrong with any kind of file, and with any file of JSON."""

import gzip
import json
import random
from collections.abc import Iterator

from tests.malformed.damage import nested, of_bytes, of_value

Case = tuple[str, bytes]  # name of the case (with its file's name after a slash), content
BIG = 2**63
DEEP = 20_000  # lists in lists, deeper than a reader's stack


def plain(name: str) -> Iterator[Case]:
    """What is wrong for any kind of file."""
    for what, data in {
        "empty": b"",
        "one byte": b"\0",
        "zeros": bytes(4096),
        "ones": b"\xff" * 4096,
        "text": b"no such format\n" * 20,
        "PAR1": b"PAR1",
        "two PAR1": b"PAR1" + b"\xff" * 40 + b"PAR1",
        "packed nothing": gzip.compress(b"", mtime=0),
        "half a packed file": gzip.compress(b"[" * 999, mtime=0)[:20],
        "HTML": b"<html><script>alert(1)</script></html>",
        "pickle": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
    }.items():
        yield f"{what}/{name}", data


def json_cases(name: str, sound: list, count: int, draw: random.Random) -> Iterator[Case]:
    yield from plain(name)
    for what, data in {
        "deep": nested(DEEP),
        "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
        "many digits": '{"a": ' + "9" * 6000 + "}",
        "a list": "[]",
        "nothing": "null",
        "half a pair": '"\\ud800"',
        "not a number": "NaN",
    }.items():
        yield f"{what}/{name}", data.encode()
    for place in range(count):
        one = draw.choice(sound)
        if place % 3 == 0:
            yield f"bytes {place}/{name}", of_bytes(as_json(one), draw)
        else:
            yield f"values {place}/{name}", as_json(of_value(one, draw))


def damaged(name: str, sound: bytes, count: int, draw: random.Random) -> Iterator[Case]:
    for place in range(count):
        yield f"bytes {place}/{name}", of_bytes(sound, draw)


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()
