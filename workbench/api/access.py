"""Who may talk to a server: an exact allow-list of hosts and origins, a token beyond loopback.

A web page of somewhere else can make a browser send requests to loopback; it cannot choose the
Host, Origin and Sec-Fetch headers, which is what this checks. `workbench.api.gate` asks it of all
requests.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from tornado.httputil import parse_cookie

from engine.core.errors import BadInput

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # addresses to listen on that are no address to ask
SHORTEST = 16  # characters of a token
NEAR = ("none", "same-origin")  # what a browser says of a request that no other site caused
Refused = tuple[int, str]  # status and one line


@dataclass(frozen=True)
class Access:
    """`hosts`: exact values of the Host header; `token`: what a client must bear, "" for none.

    A browser bears it as a cookie made of the token, so that a new token ends every old cookie.
    """

    hosts: frozenset[str]
    token: str = ""

    def refusal(self, headers: Mapping[str, str]) -> Refused | None:
        """Status and one line where a request must be refused, None where it may pass."""
        return self.stranger(headers) or self._without_token(headers)

    def stranger(self, headers: Mapping[str, str]) -> Refused | None:
        """The refusal of a request that another site caused, whatever token it bears."""
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if host.lower() not in self.hosts:
            return 403, f"host {host[:80]!r}: not served here"
        if origin is not None and not self._same(origin):
            return 403, f"origin {origin[:80]!r}: not allowed"
        if headers.get("Sec-Fetch-Site", "none") not in NEAR and not _followed(headers):
            return 403, "another site's page: may only link here"
        return None

    def _without_token(self, headers: Mapping[str, str]) -> Refused | None:
        given = headers.get("Authorization", "").removeprefix("Bearer ")
        if not self.token or self.bears(given) or self._known(headers.get("Cookie", "")):
            return None
        return 401, "authorization: give the server's token as 'Authorization: Bearer TOKEN'"

    def bears(self, given: str) -> bool:
        """Whether this is the token; takes as long whatever is given."""
        return _equal(given, self.token)

    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie by which a browser is known once it gave the token."""
        made = hmac.new(self.token.encode(), b"workbench cookie", "sha256").hexdigest()
        return f"workbench-{made[:8]}", made[8:]

    def _known(self, sent: str) -> bool:
        name, value = self.cookie()
        return _equal(parse_cookie(sent).get(name, ""), value)

    def _same(self, origin: str) -> bool:
        scheme, _, host = origin.lower().partition("://")
        return scheme in ("http", "https") and host in self.hosts


def _equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def _followed(headers: Mapping[str, str]) -> bool:
    """Whether a person followed a link here: not a frame, a picture or a script of that site."""
    return (
        headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    )


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
    own = {*LOOPBACK, *(() if address in EVERYWHERE else (address,))}
    hosts = {host_header(name, port) for name in own}
    return Access(frozenset(hosts | {name.lower() for name in names}), token)


def host_header(name: str, port: int) -> str:
    """How a client names this machine in the Host header."""
    return (f"[{name}]:{port}" if ":" in name else f"{name}:{port}").lower()
