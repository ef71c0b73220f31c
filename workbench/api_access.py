"""Who may talk to the server: an exact allow-list of hosts and origins, a token beyond loopback.

A web page of somewhere else can make a browser send requests to loopback; it cannot choose the Host
and Origin headers, which is what this checks.
"""

import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.core.errors import BadInput

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST = 16  # characters of a token


@dataclass(frozen=True)
class Access:
    """`hosts`: exact values of the Host header; `token`: what a client must bear, "" for none."""

    hosts: frozenset[str]
    token: str = ""

    def refusal(self, host: str, origin: str | None, authorization: str) -> tuple[int, str] | None:
        """Status and one line where a request must be refused, None where it may pass."""
        if host.lower() not in self.hosts:
            return 403, f"host {host[:80]!r}: not served here"
        if origin is not None and not self._same(origin):
            return 403, f"origin {origin[:80]!r}: not allowed"
        given = authorization.removeprefix("Bearer ").encode("utf-8", "replace")
        if self.token and not hmac.compare_digest(given, self.token.encode()):
            return 401, "authorization: give the server's token as 'Authorization: Bearer TOKEN'"
        return None

    def _same(self, origin: str) -> bool:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and parts.netloc.lower() in self.hosts


def access(address: str, port: int, token: str = "", names: tuple[str, ...] = ()) -> Access:
    """The rules for a server at `address`. Raises BadInput where a token is missing or short.

    `names`: further values of the Host header (name or name:port) that clients use.
    """
    outside = address not in LOOPBACK
    if outside and not token:
        raise BadInput(
            f"host {address}: beyond this machine a token is required; set WORKBENCH_TOKEN"
        )
    if token and len(token) < SHORTEST:
        raise BadInput(f"token: {len(token)} characters; give at least {SHORTEST}")
    own = {*LOOPBACK, *(() if address in ("0.0.0.0", "::") else (address,))}
    hosts = {f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in own}
    return Access(frozenset(hosts | {name.lower() for name in names}), token)
