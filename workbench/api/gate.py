"""The one gate before every route of a server: pages, files, websockets and the API alike.

It stands before the router, so that a route added anywhere is closed to strangers by default.
"""

from typing import Any

from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from workbench.api import answers as answers
from workbench.api.access import Access

OPEN = "/health"  # asked by what restarts servers, which bears no token
TOKEN = "token"  # of an address's query, by which a browser enters
JSON = ("/v1/", "/tokenize", "/detokenize", "/metrics", "/openapi.json")  # refusals as JSON
SWALLOWED = 64 << 20  # bytes of a stranger's body that are taken in and dropped
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "server_error",
}


class Gate(Matcher):
    """Matches every request that must be answered here: refused, or let in by its token."""

    def __init__(self, access: Access) -> None:
        self.access = access

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        refused = self.access.stranger(request.headers)
        if refused is None and self._enters(request):
            return {"target_kwargs": {"enters": self.access}}
        if "%00" in request.path:  # in no name of a file; asking the system for one fails
            refused = refused or (400, "no name holds a NUL")
        if request.path != OPEN:
            refused = refused or self.access.refusal(request.headers)
        return None if refused is None else {"target_kwargs": {"refused": refused}}

    def _enters(self, request: HTTPServerRequest) -> bool:
        given = request.query_arguments.get(TOKEN, [])
        asks = request.method == "GET" and len(given) == 1 and self.access.token != ""
        return asks and self.access.bears(given[0].decode("utf-8", "replace"))


@stream_request_body
class Door(RequestHandler):
    """Says no in one line, or gives the cookie and sends on to the address without its token.

    A body is taken in and dropped: a client listens only once it has sent everything.
    """

    def initialize(
        self, enters: Access | None = None, refused: tuple[int, str] = (403, "")
    ) -> None:
        self.enters, self.refused = enters, refused

    def prepare(self) -> None:
        connection: Any = self.request.connection
        connection.set_max_body_size(SWALLOWED)
        if _length(self.request) > SWALLOWED:
            self.answer()

    def data_received(self, chunk: bytes) -> None:
        """Dropped."""

    def answer(self, *_: str) -> None:
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        if self.enters is not None:
            return self._enter(self.enters)
        status, line = self.refused
        self.set_status(status)
        if self.request.path.startswith(JSON):
            self.finish(answers.error(line, KINDS[status]))
            return None
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        open_with = "; open the address that the server printed at its start"
        self.finish(f"{line}{open_with if status == 401 else ''}\n")
        return None

    get = head = post = put = patch = delete = options = answer

    def _enter(self, access: Access) -> None:
        name, value = access.cookie()
        self.set_cookie(name, value, path="/", httponly=True, samesite="Lax")
        parts = [part for part in self.request.query.split("&") if part.partition("=")[0] != TOKEN]
        # One slash: two would send the browser to a host named by the path.
        place = "/" + self.request.path.lstrip("/\\")
        self.redirect(place + ("?" + "&".join(parts) if any(parts) else ""))

    def write_error(self, status_code: int, **facts: Any) -> None:
        self.finish(f"{self._reason}\n")

    def log_exception(self, kind: Any, fault: Any, trace: Any) -> None:
        """A stranger's fault is nothing to log."""
        if not isinstance(fault, HTTPError):
            super().log_exception(kind, fault, trace)


def guard(application: Application, access: Access) -> None:
    """Put the gate before whatever `application` serves, now and later."""
    application.default_router.rules.insert(0, Rule(Gate(access), Door))


def _length(request: HTTPServerRequest) -> int:
    """Bytes the client announces; 0 where it says nothing that makes sense."""
    try:
        return int(request.headers.get("Content-Length", "0"))
    except ValueError:
        return 0
