"""A server of ours on loopback that answers only a Jupyter server: the app's, or a kernel's pages.

A secret comes with every request of the Jupyter server; whoever else finds the port is refused,
before any route sees the request.
"""

import hmac
from dataclasses import dataclass
from typing import Any

from tornado.httpclient import HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClientConnection, websocket_connect

from workbench.api.access import LOOPBACK
from workbench.pages.frame.visitors import called

HOST = LOOPBACK[0]
SECRET = "X-Workbench-Secret"
PERSON = "X-Workbench-Person"  # who asks, as the Jupyter server knows them
ANSWER = 120.0  # seconds one page may take
LARGEST = 64 << 20  # bytes of one answer or message


@dataclass(frozen=True)
class Reached:
    """Where such a server is, and what it wants to hear."""

    port: int
    secret: str

    async def ask(self, uri: str, method: str = "GET", **headers: str) -> HTTPResponse:
        """The answer to one request, whatever its status. Raises OSError without one."""
        client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=LARGEST)
        try:
            return await client.fetch(
                HTTPRequest(
                    f"http://{HOST}:{self.port}{uri}",
                    method=method,
                    headers={**headers, SECRET: self.secret},
                    request_timeout=ANSWER,
                    follow_redirects=False,
                    decompress_response=False,
                ),
                raise_error=False,
            )
        except (OSError, HTTPClientError):
            raise OSError("the app did not answer; reload the page") from None
        finally:
            client.close()

    async def connect(self, uri: str, protocols: list[str]) -> WebSocketClientConnection:
        """A websocket to it."""
        request = HTTPRequest(f"ws://{HOST}:{self.port}{uri}", headers={SECRET: self.secret})
        return await websocket_connect(request, subprotocols=protocols, max_message_size=LARGEST)


class Stranger(Matcher):
    """Matches every request that does not bear the secret; others bear a name of the parent."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode()

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        given = request.headers.get(SECRET, "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.secret):
            return {}
        if PERSON in request.headers:
            called(request, request.headers[PERSON])
        return None


class Refusal(RequestHandler):
    """403 to whatever is asked."""

    def prepare(self) -> None:
        self.set_status(403)
        self.finish("not served here\n")


def only_for(application: Application, secret: str) -> None:
    """Close `application` to whoever does not bear the secret."""
    application.default_router.rules.insert(0, Rule(Stranger(secret), Refusal))
