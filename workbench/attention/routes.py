"""Routes of attention: one tile of a head, or what each key of it receives, as bytes.

They stand behind the same gate as the pages. A tile is 64 KiB whatever the sequence; how long a
sequence may be is decided before it is computed.
"""

import asyncio
from typing import Any

from tornado.web import HTTPError, RequestHandler

from engine.core.errors import BadInput
from workbench.attention.readings import Readings

PLACE = "attention-tiles"
WAITING = 64  # tiles asked for at once, by all
LONGEST = 6  # digits of a number in an address


class Waiting:
    """How many tiles are asked for now."""

    def __init__(self) -> None:
        self.count = 0


class Tiles(RequestHandler):
    """GET attention-tiles/KEY/tile?layer=&head=&level=&row=&column=&how=, or KEY/received."""

    def initialize(self, readings: Readings, waiting: Waiting) -> None:
        self.readings, self.waiting = readings, waiting

    async def get(self, key: str, what: str) -> None:
        if self.waiting.count >= WAITING:
            raise HTTPError(429, "attention: busy; ask again")
        self.waiting.count += 1
        try:
            data = await asyncio.to_thread(self._made, key, what)
        except BadInput as fault:
            raise HTTPError(404, str(fault)) from None
        finally:
            self.waiting.count -= 1
        self.set_header("Content-Type", "application/octet-stream")
        self.set_header("Cache-Control", "private, max-age=3600")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(data)

    def _made(self, key: str, what: str) -> bytes:
        tiles = self.readings.tiles(key)
        layer, head = self._number("layer"), self._number("head")
        if what == "received":
            return bytes(tiles.received(layer, head).astype("<f4").tobytes())
        place = [self._number(name) for name in ("level", "row", "column")]
        return tiles.tile(layer, head, *place, self.get_query_argument("how", "most"))

    def _number(self, name: str) -> int:
        text = self.get_query_argument(name, "")
        if not (text.isascii() and text.isdigit() and len(text) <= LONGEST):
            raise BadInput(f"tile: {name}: a number from 0")
        return int(text)

    def write_error(self, status_code: int, **facts: Any) -> None:
        fault = facts.get("exc_info", (None, None))[1]
        said = fault.log_message if isinstance(fault, HTTPError) and fault.log_message else ""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{said or self._reason}\n")

    def log_exception(self, kind: Any, fault: Any, trace: Any) -> None:
        """What a client asked wrongly is nothing to log."""
        if not isinstance(fault, HTTPError):
            super().log_exception(kind, fault, trace)


def routes(readings: Readings) -> list[tuple[str, type[RequestHandler], dict[str, Any]]]:
    """What a server of pages is given beside them."""
    shared = {"readings": readings, "waiting": Waiting()}
    return [(rf"/{PLACE}/([\w-]{{1,64}})/(tile|received)", Tiles, shared)]
