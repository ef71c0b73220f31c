"""The app's pages and websockets on the Jupyter server's own origin, behind its login.

Only what the app needs goes through: no cookie, no authorization and no origin reach it, and it
sets no cookie here.
"""

import asyncio
from typing import Any

from tornado.httpclient import HTTPResponse
from tornado.web import HTTPError
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, WebSocketHandler

from workbench.jupyter.app_process import LARGEST
from workbench.jupyter.guarded import Guarded

PING = 30.0  # seconds
ASKED = ("Accept", "Accept-Encoding", "Accept-Language", "If-None-Match", "If-Modified-Since")
ANSWERED = (
    "Content-Type", "Content-Encoding", "Cache-Control", "ETag", "Last-Modified", "Expires",
    "Vary", "Location",
)  # fmt: skip


class AppPage(Guarded):
    """GET and HEAD of a page or a file of the app. Nothing is posted to it but over websockets."""

    action = "execute"  # opening a study starts a run

    async def get(self) -> None:
        headers = {k: self.request.headers[k] for k in ASKED if k in self.request.headers}
        try:
            answer = await self.app.ask(self.request.uri or "/", self.request.method, **headers)
        except OSError as fault:
            raise HTTPError(502, str(fault)) from None
        self._pass_on(answer)

    head = get

    def _pass_on(self, answer: HTTPResponse) -> None:
        self.set_status(answer.code, answer.reason)
        for name in ANSWERED:
            for value in answer.headers.get_list(name):
                self.set_header(name, value)
        self.finish(answer.body if answer.code not in (204, 304) else None)


class AppSocket(Guarded, WebSocketHandler):
    """A page's websocket, message by message in both directions."""

    action = "execute"
    far: WebSocketClientConnection | None = None
    reading: asyncio.Task[None] | None = None

    async def get(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        protocols = self.request.headers.get("Sec-WebSocket-Protocol", "")
        names = [name.strip() for name in protocols.split(",") if name.strip()]
        try:
            self.far = await self.app.connect(self.request.uri or "/", names)
        except Exception as fault:  # whatever went wrong there, it is no fault of this request
            self.log.warning("workbench: websocket refused by the app (%s)", fault)
            raise HTTPError(502, "the app refused the connection; reload the page") from None
        try:
            await super().get(*args, **kwargs)  # until either side closes
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
