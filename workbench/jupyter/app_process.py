"""The app's own process: started when first needed, on loopback, answering only its parent.

The secret by which it knows its parent goes to the child through its standard input. The child ends
when that input closes, so it never outlives the Jupyter server.
"""

import asyncio
import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from tornado.httpclient import HTTPResponse
from tornado.websocket import WebSocketClientConnection

from workbench.jupyter.reached import Reached

START = 600.0  # seconds until it answers; its imports alone take minutes on a busy machine


class AppProcess:
    """Starts the app below the path `prefix`, with the runs below `root`, and talks to it."""

    def __init__(self, prefix: str, root: Path) -> None:
        self.prefix, self.root = "/" + prefix.strip("/"), root
        self.secret = secrets.token_urlsafe(32)
        self.port = 0
        self.child: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self.port > 0 and self.child is not None and self.child.poll() is None

    async def start(self) -> None:
        """Until the app answers; one start however many ask. Raises OSError where it does not."""
        if self.alive:
            return
        if self._starting is None or self._starting.done():
            self._starting = asyncio.get_running_loop().create_task(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        self.port = 0
        loop = asyncio.get_running_loop()
        reading = loop.run_in_executor(None, self._begin)
        try:
            self.port = await asyncio.wait_for(reading, START)
        except OSError:  # a timeout is one, too
            self.stop()
            raise OSError("the app did not start; the Jupyter server's log says why") from None

    def stop(self) -> None:
        """End the child; it also ends by itself with this process."""
        self.port = 0
        if self.child is not None:
            self.child.kill()

    def _begin(self) -> int:
        """Start the child and wait for its port."""
        # -P: a file of the notebooks' folder named like a module of ours is no module of ours.
        words = [sys.executable, "-P", "-m", "workbench.jupyter.app_child"]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(words, stdin=pipe, stdout=pipe, cwd=self.root)
        assert self.child.stdin is not None and self.child.stdout is not None
        given = {"secret": self.secret, "prefix": self.prefix, "root": str(self.root)}
        try:
            self.child.stdin.write(json.dumps(given).encode() + b"\n")
            self.child.stdin.flush()
            return int(json.loads(self.child.stdout.readline() or "{}")["port"])
        except (OSError, ValueError, KeyError):
            raise OSError("it gave no port") from None

    async def ask(self, uri: str, method: str = "GET", **headers: str) -> HTTPResponse:
        """The app's answer to one request, whatever its status. Raises OSError without one."""
        await self.start()
        return await Reached(self.port, self.secret).ask(uri, method, **headers)

    async def connect(self, uri: str, protocols: list[str]) -> WebSocketClientConnection:
        """A websocket to the app."""
        await self.start()
        return await Reached(self.port, self.secret).connect(uri, protocols)

    async def runs(self) -> list[dict[str, Any]]:
        """The runs the app holds; none where it has not been started."""
        if not self.alive:
            return []
        try:
            answer = await self.ask(f"{self.prefix}/runs.json")
        except OSError:
            return []
        return list(json.loads(answer.body)["runs"]) if answer.code == 200 else []
