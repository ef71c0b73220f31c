"""The app's pages and websockets, and those of kernels, on the Jupyter server's own origin, behind
its login.

Only what the app needs goes through: no cookie, no authorization and no origin reach it, and it
sets no cookie here.
"""

import asyncio
import re
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from tornado.httpclient import HTTPResponse
from tornado.web import HTTPError
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, WebSocketHandler

from workbench.jupyter.app_process import AppProcess
from workbench.jupyter.guarded import Guarded
from workbench.jupyter.kernels import reached
from workbench.jupyter.reached import LARGEST, PERSON, Reached

PING = 30.0  # seconds
ENDED = "this kernel's pages have gone; run the notebook's cell again"
FILES = re.compile(
    r"/(?:static|components|modules)/[^?]*$"
)  # scripts and styles, the same for everybody
FRAMES = ("iframe", "frame", "embed", "object")
ASKED = ("Accept", "Accept-Encoding", "Accept-Language", "If-None-Match", "If-Modified-Since")
ANSWERED = (
    "Content-Type", "Content-Encoding", "Cache-Control", "ETag", "Last-Modified", "Expires",
    "Vary", "Location", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
)  # fmt: skip


class Passing(Guarded):
    """What lets requests through to a server of ours: the app, or (`name`) a kernel's pages."""

    action = "execute"  # opening a study starts a run

    @property
    def content_security_policy(self) -> str:
        """In a frame of this server's own pages: tabs and cells. A hub forbids every frame."""
        return "frame-ancestors 'self'"

    async def prepare(self, **options: Any) -> None:
        """A hub asks what a script imports for a token against forged requests, which an import
        cannot bear: for the app's own files, which tell nothing of anyone, it is given here."""
        imported = self.request.headers.get("Sec-Fetch-Mode") == "cors"
        same = self.request.headers.get("Sec-Fetch-Site") == "same-origin"
        if imported and same and self.request.method == "GET" and FILES.search(self.request.path):
            with suppress(RuntimeError):  # a server without a hub has none yet, and asks for none
                self.request.headers["X-XSRFToken"] = self.xsrf_token.decode("utf-8", "replace")
        await super().prepare(**options)

    def from_here(self) -> bool:
        """Below a hub, other people's servers are of the same origin: no frame of theirs either."""
        framed = self.request.headers.get("Sec-Fetch-Dest") in FRAMES and self.base_url != "/"
        page = urlsplit(self.request.headers.get("Referer", "")).path
        return super().from_here() and (not framed or page.startswith(self.base_url))

    def server(self, name: str = "") -> AppProcess | Reached:
        """Whom to ask. Raises HTTPError where a kernel's pages have gone."""
        if not name:
            return self.app
        found = reached(name)
        if found is None:
            raise HTTPError(404, ENDED)
        return found


class AppPage(Passing):
    """GET and HEAD of a page or a file. Nothing is posted but over websockets."""

    async def get(self, name: str = "") -> None:
        headers = {k: self.request.headers[k] for k in ASKED if k in self.request.headers}
        headers[PERSON] = self.person
        try:
            answer = await self.server(name).ask(
                self.request.uri or "/", self.request.method, **headers
            )
        except OSError as fault:
            raise HTTPError(502, ENDED if name else str(fault)) from None
        self._pass_on(answer)

    head = get

    def _pass_on(self, answer: HTTPResponse) -> None:
        self.set_status(answer.code, answer.reason)
        for name in ANSWERED:
            for value in answer.headers.get_list(name):
                self.set_header(name, value)
        self.finish(answer.body if answer.code not in (204, 304) else None)


class AppSocket(Passing, WebSocketHandler):
    """A page's websocket, message by message in both directions."""

    far: WebSocketClientConnection | None = None
    reading: asyncio.Task[None] | None = None

    async def get(self, name: str = "", **kwargs: Any) -> None:  # type: ignore[override]
        server = self.server(name)
        protocols = self.request.headers.get("Sec-WebSocket-Protocol", "")
        names = [name.strip() for name in protocols.split(",") if name.strip()]
        try:
            self.far = await server.connect(self.request.uri or "/", names)
        except Exception as fault:  # whatever went wrong there, it is no fault of this request
            self.log.warning("workbench: websocket refused by the app (%s)", fault)
            raise HTTPError(502, "the app refused the connection; reload the page") from None
        try:
            await super().get(**kwargs)  # until either side closes
        finally:
            self.far.close()

    @property
    def max_message_size(self) -> int:
        return LARGEST

    @property
    def ping_interval(self) -> float:
        """Seconds; so that nothing on the way takes a page at rest for one that has gone."""
        return PING

    @property
    def ping_timeout(self) -> float:
        return PING

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """The one the app chose: what follows it in the browser's list is a token, not a name."""
        return self.far.selected_subprotocol if self.far is not None else None

    def open(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        self.reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        """From the app to the browser; a slow browser holds the app back, not our memory."""
        assert self.far is not None
        try:
            while (message := await self.far.read_message()) is not None:
                await self.write_message(message, binary=isinstance(message, bytes))
        except WebSocketClosedError:
            pass
        self.close()

    async def on_message(self, message: str | bytes) -> None:  # type: ignore[override]
        assert self.far is not None
        try:
            await self.far.write_message(message, binary=isinstance(message, bytes))
        except WebSocketClosedError:
            self.close()
