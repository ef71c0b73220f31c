"""Visitors: a name for each browser that may enter, by which limits are counted.

The name is a random cookie, or what the Jupyter server in front calls its user. It opens no door:
who drops it is a newcomer, under the limits for everybody together.
"""

import secrets
from collections.abc import Callable
from typing import Any

import panel as pn
from tornado.httputil import HTTPHeaders, HTTPServerRequest, parse_cookie
from tornado.routing import Matcher, Rule
from tornado.web import Application, OutputTransform, RequestHandler

from workbench.pages.frame.security import secure

COOKIE = "workbench-person"
HINT = "Sec-Ch-Prefers-Color-Scheme"  # what a browser may say of its system, once asked to
LONGEST = 64  # characters of a name that are looked at


def person() -> str:
    """The name of whoever the present page belongs to; "" where no page is."""
    document = pn.state.curdoc
    if document is None or document.session_context is None:
        return ""
    return str((pn.state.cookies or {}).get(COOKIE, ""))[:LONGEST]


def watching() -> Callable[[], bool]:
    """Says, whenever it is asked, whether a browser holds the present page; always, of no page."""
    document = pn.state.curdoc
    context = document.session_context if document is not None else None
    if context is None:
        return lambda: True

    def held() -> bool:
        session = getattr(context, "session", None)  # none while the page is made
        return session is not None and session.connection_count > 0

    return held


def called(request: HTTPServerRequest, name: str) -> None:
    """Let `request` come from `name`, whatever it said itself."""
    said = parse_cookie(request.headers.get("Cookie", ""))
    kept = [f"{key}={value}" for key, value in said.items() if key != COOKIE]
    request.headers["Cookie"] = "; ".join([*kept, f"{COOKIE}={name}"])


class Greeter(Matcher):
    """Matches nothing: names whoever asks without a name, before any route sees the request."""

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        if not parse_cookie(request.headers.get("Cookie", "")).get(COOKIE):
            name = secrets.token_urlsafe(12)
            called(request, name)
            request.greeted = name  # type: ignore[attr-defined]
        return None


class Greeting(OutputTransform):
    """Gives a new name to the browser, with the first page it gets, and asks for its colours."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self.name = getattr(request, "greeted", "")

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        if headers.get("Content-Type", "").startswith("text/html"):
            secure(headers)
            headers["Accept-CH"] = HINT
            if self.name:
                headers.add("Set-Cookie", f"{COOKIE}={self.name}; HttpOnly; Path=/; SameSite=Lax")
        return status_code, headers, chunk


def greet(application: Application) -> None:
    """Name everybody whom `application` serves from now on."""
    application.default_router.rules.insert(0, Rule(Greeter(), RequestHandler))
    application.add_transform(Greeting)
