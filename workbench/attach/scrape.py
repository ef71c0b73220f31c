"""A server's metrics page, fetched: one bounded GET, without redirects."""

import http.client
import re
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.core.errors import BadInput
from engine.core.limits import check

TIMEOUT = 5.0  # seconds a server has to go on answering, and its text to come
NAME = re.compile(r"[\w.:%-]{1,253}", re.ASCII)  # of a host, or its address
SHOWN = 200  # characters of an address that is none
PIECE = 1 << 16  # bytes read at a time
PAGES = ("/metrics", "/v1")  # ends of addresses that mean the server


@dataclass(frozen=True)
class Address:
    """Where a server answers."""

    scheme: str
    host: str
    port: int
    path: str  # of its metrics

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def address(url: str) -> Address:
    """`http://host:port`, with or without its scheme, /metrics or /v1. Raises BadInput."""
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    good = host and NAME.fullmatch(host) and parts.scheme in ("http", "https")
    if not host or not good or parts.username is not None:
        shown = url if len(url) <= SHOWN else f"{url[:SHOWN]}…"
        raise BadInput(f"server {shown!r}: not an address; write http://host:port")
    path = parts.path.rstrip("/")
    for end in PAGES:
        path = path.removesuffix(end)
    return Address(
        parts.scheme, host, port or (443 if parts.scheme == "https" else 80), f"{path}/metrics"
    )


def scrape(server: Address) -> str:
    """The text of its metrics. Raises BadInput in a line that says what to do."""
    kind = http.client.HTTPSConnection if server.scheme == "https" else http.client.HTTPConnection
    line = kind(server.host, server.port, timeout=TIMEOUT)
    # Each byte in time is no answer in time: a head that trickles has no bound of its own.
    watch = threading.Timer(2 * TIMEOUT, _cut, (line,))
    watch.daemon = True
    watch.start()
    try:
        line.request("GET", server.path, headers={"Accept": "text/plain"})
        answer = line.getresponse()
        if answer.status != 200:
            raise BadInput(
                f"server {server}: {server.path} answers {answer.status}; vLLM publishes its "
                "metrics there, SGLang with --enable-metrics"
            )
        text = _read(server, answer)
        if not watch.is_alive():
            raise TimeoutError(f"it took over {2 * TIMEOUT:g} s")
    except (OSError, http.client.HTTPException, UnicodeError) as fault:
        raise BadInput(f"server {server}: it does not answer ({fault or 'no reply'})") from None
    finally:
        watch.cancel()
        line.close()
    return text.decode("utf-8", "replace")


def _cut(line: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # not open any more
        line.sock.shutdown(socket.SHUT_RDWR)


def _read(server: Address, answer: http.client.HTTPResponse) -> bytes:
    """Its body, within the limits of a request's and within the time."""
    until, text = time.monotonic() + TIMEOUT, b""
    while piece := answer.read1(PIECE):
        text += piece
        check(f"server {server}", "bytes of metrics", len(text), "body_bytes")
        if time.monotonic() > until:
            raise TimeoutError(f"its metrics took over {TIMEOUT:g} s")
    if answer.length:  # that it said were to come
        raise http.client.IncompleteRead(text, answer.length)
    return text
