"""Who may talk to a server: an exact allow-list of hosts and origins, a token beyond loopback.

A web page of somewhere else can make a browser send requests to loopback; it cannot choose the
Host, Origin and Sec-Fetch headers, which is what this checks. `workbench.api.gate` asks it of all
requests.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tornado.httputil import parse_cookie

from engine.core.errors import BadInput
from engine.core.limits import read_text

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # addresses to listen on that are no address to ask
SHORTEST = 16  # characters of a token
NEAR = ("none", "same-origin")  # what a browser says of a request that no other site caused
Refused = tuple[int, str]  # status and one line


@dataclass(frozen=True)
class Access:
    """`hosts`: exact values of the Host header; `token`: what a client must bear, "" for none.

    `keys`: (name, key) of clients that have one of their own; each takes the token's place.

    A browser bears it as a cookie made of the token, so that a new token ends every old cookie.
    """

    hosts: frozenset[str]
    token: str = ""
    keys: tuple[tuple[str, str], ...] = ()

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
        if not self.token and not self.keys:
            return None
        if self.client(headers) or (self.token and self._enters(headers)):
            return None
        return 401, "authorization: give the server's token as 'Authorization: Bearer TOKEN'"

    def _enters(self, headers: Mapping[str, str]) -> bool:
        return self.bears(_given(headers)) or self._known(headers.get("Cookie", ""))

    def client(self, headers: Mapping[str, str]) -> str:
        """The name of the key that a request bears, "" for none; looks at all, whichever it is."""
        given = _given(headers)
        borne = [name for name, key in self.keys if _equal(given, key)]
        return borne[0] if borne else ""

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


def _given(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _equal(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def _followed(headers: Mapping[str, str]) -> bool:
    """Whether a person followed a link here: not a frame, a picture or a script of that site."""
    return (
        headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    )


def access(
    address: str, port: int, token: str = "", names: tuple[str, ...] = (),
    keys: tuple[tuple[str, str], ...] = (),
) -> Access:  # fmt: skip
    """The rules for a server at `address`. Raises BadInput where a token is missing or short.

    `names`: further values of the Host header (name or name:port) that clients use.
    """
    outside = address not in LOOPBACK
    if outside and not token and not keys:
        raise BadInput(
            f"host {address}: beyond this machine a token is required; set WORKBENCH_TOKEN"
        )
    for what, secret in (("token", token), *((f"key of {name}", key) for name, key in keys)):
        if secret and len(secret) < SHORTEST:
            raise BadInput(f"{what}: {len(secret)} characters; give at least {SHORTEST}")
    own = {*LOOPBACK, *(() if address in EVERYWHERE else (address,))}
    hosts = {host_header(name, port) for name in own}
    return Access(frozenset(hosts | {name.lower() for name in names}), token, keys)


def read_keys(path: Path) -> tuple[tuple[str, str], ...]:
    """Clients' keys, a NAME and its KEY on each line; # begins a remark. Raises BadInput."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "not text"
        raise BadInput(f"{path}: cannot be read ({why}); give a file of names and keys") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] in found or words[1] in found.values():
            raise BadInput(f"{path}: line {number}: give NAME KEY, each name and key once")
        found[words[0]] = words[1]
    if not found:
        raise BadInput(f"{path}: holds no key; give NAME KEY on a line")
    return tuple(found.items())


def host_header(name: str, port: int) -> str:
    """How a client names this machine in the Host header."""
    return (f"[{name}]:{port}" if ":" in name else f"{name}:{port}").lower()
