"""Requests and messages that no page of ours and no browser sends to a Jupyter server's routes.

Drawn by a seed, so that a failing one can be sent again. Kinds, not cases: addresses that climb,
are encoded, long or no text; methods; bodies that lie about their size; forged origins, persons
and secrets; upgrades that are none; and, once a websocket is open, messages of every order.
"""

import json
import random
import struct
from collections.abc import Iterator

PLACES = ("api/catalogue", "api/runs", "app", "app/", "app/ws", "app/study/ws", "app/study",
          "app/run", "app/runs.json", "app/static/js/bokeh.js", "app/modules/x.js",
          "app/attention-tiles/x/tile", "kernel/{kernel}", "kernel/{kernel}/study",
          "kernel/{kernel}/study/ws", "kernel/{kernel}/attention", "kernel/x/ws", "nowhere",
          "")  # fmt: skip
CLIMBS = ("..", "../..", "%2e%2e", "..%2f..%2f", "%2e%2e%2f%2e%2e", "..\\..", "..%5c", "....//",
          "%252e%252e%252f", "..;/", "%c0%ae%c0%ae/", "/", "//", "/./", "%2f", "%00", "%0d%0aX: y",
          "@evil.example/", ":1/", "#", "%", "%zz", "\xff\xfe", "\x7f", "\t", "[", "]", "{",
          "`")  # fmt: skip
TARGETS = ("etc/passwd", "api/contents", "api/runs", "lab", "", ".ssh/id_rsa", "work/first.run")
NAMES = ("slug", "name", "file", "preset", "frame", "theme", "seed", "workload.count", "token",
         "bokeh-session-id", "bokeh-autoload-element", "request", "layer", "a", "__proto__",
         "_xsrf")  # fmt: skip
VALUES = ("", "flover", "x" * 3000, "../../etc/passwd", "%00", "1e999", "-1", "NaN", "<script>",
          "%ff%fe", "9" * 400, "{{7*7}}", "first.run", "true", "[]",
          "%0d%0aSet-Cookie:a=b")  # fmt: skip
METHODS = ("GET",) * 9 + ("HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
                          "PROPFIND", "get", "M" * 300, "G\x00T")  # fmt: skip
HEADERS = (
    ("Origin", ("http://evil.example", "null", "{own}", "{own}.evil.example", "file://", "\xff",
    "")),
    ("Referer", ("http://evil.example/", "{own}/user/bob/lab", "http://[", "x" * 5000)),
    ("Sec-Fetch-Site", ("cross-site", "same-site", "same-origin", "none", "", "\xff")),
    ("Sec-Fetch-Mode", ("cors", "navigate", "websocket", "x")),
    ("Sec-Fetch-Dest", ("iframe", "script", "object", "x")),
    ("X-Workbench-Secret", ("", "x", "x" * 9000)),
    ("X-Workbench-Person", ("", "bob", "a; b=c", "\xe9" * 200)),
    ("X-Forwarded-For", ("127.0.0.1", "x" * 500)),
    ("X-HTTP-Method-Override", ("DELETE",)),
    ("X-XSRFToken", ("", "2|x|y|z", "x" * 3000)),
    ("Cookie", ("a=b", "=;=;;", "_xsrf=\"", "username-{port}=2|1:0|x", "a=" + "b" * 9000,
    "\xff=\xff")),
    ("Accept-Encoding", ("gzip", "br;q=1e999", "x" * 3000)),
    ("If-None-Match", ("*", '"x"', "x" * 3000)),
    ("If-Modified-Since", ("yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "9" * 400)),
    ("Range", ("bytes=0-0", "bytes=-1", "bytes=9-1", "x")),
    ("Expect", ("100-continue", "x")),
    ("Content-Type", ("application/json", "multipart/form-data", "multipart/form-data; boundary=x",
                      "application/x-www-form-urlencoded", "\xff")),
    ("Connection", ("Upgrade", "keep-alive", "close", "x")),
    ("Upgrade", ("websocket", "h2c", "x")),
    ("Sec-WebSocket-Version", ("13", "8", "x", "")),
    ("Sec-WebSocket-Key", ("dGhlIHNhbXBsZSBub25jZQ==", "", "x")),
    ("Sec-WebSocket-Protocol", ("bokeh", "bokeh, x", ",,,", "bokeh, " + "x" * 4000, "a b", "\xe9")),
    ("Sec-WebSocket-Extensions", ("permessage-deflate", "x; y=z",
    "permessage-deflate; server_max_window_bits=99")),
)  # fmt: skip
BODIES = (b"", b"{}", b"[" * 20000, b"\x00\xff" * 500, b"a=b&c=d", b"--x\r\n\r\n", b"x" * 300_000)


def requests(seed: int, count: int, **about: str) -> Iterator[tuple[str, bytes]]:
    """(what of it, bytes) of each; `about`: `own` origin, `port`, `base`, `token` and `kernel`."""
    draw = random.Random(seed)
    for _ in range(count):
        place = _address(draw).format(**about) if draw.random() < 0.98 else draw.choice(
            ("*", "", "x", "http://evil.example/", "{own}{base}/workbench/app".format(**about))
        )  # fmt: skip
        method, body = draw.choice(METHODS), draw.choice(BODIES) if draw.random() < 0.3 else b""
        headers = [("Host", about["own"].removeprefix("http://"))]
        if draw.random() < 0.1:
            headers = [("Host", draw.choice(("evil.example", "", "[", "a" * 300)))] * 2
        if draw.random() < 0.75:
            headers.append(("Authorization", f"token {about['token']}"))
        for name, values in draw.sample(HEADERS, draw.choice((0, 1, 1, 2, 3, 6))):
            said = draw.choice(values).replace("{own}", about["own"])
            headers.append((name, said.replace("{port}", about["port"])))
        if body or draw.random() < 0.1:
            lies = (str(len(body)),) * 5 + ("0", "-1", "9" * 30, "x", str(len(body) + 9))
            headers.append(("Content-Length", draw.choice(lies)))
        if draw.random() < 0.05:
            headers.append(("Transfer-Encoding", draw.choice(("chunked", "x", "gzip, chunked"))))
        lines = [f"{method} {place} HTTP/1.1", *(f"{name}: {said}" for name, said in headers)]
        text = "\r\n".join(lines) + "\r\n\r\n"
        yield (
            f"{method[:10]} {place[:120]!r} {headers[1:]!r:.300}",
            text.encode("latin-1", "replace") + body,
        )


def _address(draw: random.Random) -> str:
    place = "{base}/workbench/" + draw.choice(PLACES)
    for _ in range(draw.choice((0, 0, 0, 1, 1, 2, 8, 500))):
        place += draw.choice(("/", "")) + draw.choice(CLIMBS).replace("{", "{{")
    if draw.random() < 0.4:
        place += "/" + draw.choice(TARGETS)
    if draw.random() < 0.5:
        many = range(draw.choice((1, 2, 9, 300)))
        asked = (f"{draw.choice(NAMES)}={draw.choice(VALUES)}" for _ in many)
        place += "?" + draw.choice("&;").join(asked).replace("{", "{{").replace("}", "}}")
    return place


def frames(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """(what of it, bytes) of what follows an upgrade: each is one connection's; it may end it."""
    draw = random.Random(seed)
    for _ in range(count):
        parts, said = [], []
        for _ in range(draw.choice((1, 1, 2, 5, 40))):
            what, part = _frame(draw)
            parts.append(part)
            said.append(what)
        yield " ".join(said)[:200], b"".join(parts)


def _frame(draw: random.Random) -> tuple[str, bytes]:
    kind = draw.choice(
        ("message", "message", "message", "text", "binary", "control", "broken", "long")
    )
    if kind == "message":
        whole = message(draw)
        return f"{kind}:{whole[:60]!r}", b"".join(frame(1, part) for part in whole)
    if kind in ("text", "binary"):
        code, data = (
            (1 if kind == "text" else 2),
            draw.choice((b"", b"\xff\xfe", b"{}", b"[" * 9999, b"x" * 70000)),
        )
        return f"{kind}:{len(data)}", frame(code, data, fin=draw.random() < 0.8)
    if kind == "control":
        code, data = (
            draw.choice((8, 9, 10, 11)),
            draw.choice((b"", b"\x03\xe8", b"\x00", b"x" * 200)),
        )
        return f"control {code}", frame(code, data, fin=draw.random() < 0.8)
    if kind == "long":  # announced, and never sent
        return "long", struct.pack(
            "!BBQ", 0x81, 0xFF, draw.choice((1 << 20, 1 << 40, (1 << 63) + 5))
        ) + b"mask"
    code = draw.choice((0, 3, 7, 15, 0x40 | 1, 0x70))
    return f"broken {code}", frame(
        code, b"x" * draw.choice((0, 5, 300)), masked=draw.random() < 0.5
    )


def frame(code: int, data: bytes, fin: bool = True, masked: bool = True) -> bytes:
    """A websocket frame as a client sends it; the mask is of zeros, which change nothing."""
    first, size = (0x80 if fin else 0) | code, len(data)
    mask = 0x80 if masked else 0
    if size < 126:
        head = struct.pack("!BB", first, mask | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, mask | 126, size)
    else:
        head = struct.pack("!BBQ", first, mask | 127, size)
    return head + (bytes(4) if masked else b"") + data


KINDS = ("PATCH-DOC", "PATCH-DOC", "PATCH-DOC", "PULL-DOC-REQ", "PUSH-DOC", "ACK", "OK", "ERROR",
         "SERVER-INFO-REQ", "NEW", "", None, 7, {}, "__class__")  # fmt: skip
EVENTS = ("ModelChanged", "MessageSent", "ColumnDataChanged", "ColumnsStreamed", "ColumnsPatched",
          "TitleChanged", "RootAdded", "RootRemoved", "DocumentPatched", "x", None, 3,
          {})  # fmt: skip
ODD = (None, 0, -1, 1e308, 10**400, True, "", "x" * 4000, "\ud800", [], {}, [[]] * 50,
       {"type": "object", "name": "Div", "id": "z"}, {"type": "object", "name": "FileInput",
       "id": 3},
       {"type": "ndarray", "array": {"type": "bytes", "data": "AAAA"}, "shape": [1 << 40],
       "dtype": "float64", "order": "little"},
       {"type": "ndarray", "array": {"type": "bytes", "data": "AAAA"}, "shape": [-1],
       "dtype": "object", "order": "little"},
       {"type": "bytes", "data": "no base64"}, {"type": "symbol", "name": "x"}, {"type": "map",
       "entries": [[[], []]]},
       {"type": "number", "value": "nan"}, {"type": "slice", "start": "x"}, {"type": "value"},
       {"id": "p1001"})  # fmt: skip
ATTRS = ("value", "data", "frame", "window", "command", "children", "x")
FIELDS = ("model", "attr", "new", "hint", "msg_type", "msg_data", "column_source", "data",
          "patches", "rollover", "cols", "title", "setter")  # fmt: skip


def message(draw: random.Random) -> list[bytes]:
    """The parts of a message of Bokeh's protocol that is almost one: header, metadata, content."""
    ids = [{"id": f"p{draw.choice((1, 1001, 1002, 1010, 1100, 99999))}"}, *ODD]
    events = [
        {"kind": draw.choice(EVENTS)}
        | {name: draw.choice(ids) for name in draw.sample(FIELDS, draw.choice((0, 2, 3, 6)))}
        for _ in range(draw.choice((0, 1, 1, 3, 1200 if draw.random() < 0.1 else 2)))
    ]
    if draw.random() < 0.5:
        for event in events:
            event |= {"kind": "ModelChanged", "model": {"id": f"p{draw.randint(1000, 1200)}"}}
            event |= {"attr": draw.choice(ATTRS), "new": draw.choice(ODD)}
    content = draw.choice(
        (events, {"events": events}, {"events": events}, {"events": events}, None)
    )
    header = {"msgid": draw.choice(("1", 1, None, {}, "x" * 2000)), "msgtype": draw.choice(KINDS)}
    if draw.random() < 0.2:
        header["num_buffers"] = draw.choice((1, -1, 10**9, "x", None))
    parts = [_text(header), _text({}), _text(content)]
    if draw.random() < 0.15:
        draw.shuffle(parts)
    if draw.random() < 0.1:
        parts[draw.randrange(3)] = draw.choice((b"", b"null", b"[", b"{" * 900, b"\xff"))
    return parts[: draw.choice((3, 3, 3, 3, 2, 1))]


def _text(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")
