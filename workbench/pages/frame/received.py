"""Websocket messages of a page's browser: those that our pages send are let in, and no others.

Bokeh's protocol lets a browser replace the whole document, or give it any number of new models,
each of which is laid out beside all there are; that kept everybody's pages waiting for minutes.
It unpacks whatever bytes are sent, too.
What it says of a message that it cannot take is one line, to the browser and in the log, without
the message.
"""

import base64
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bokeh.core.property.descriptors import UnsetValueError
from bokeh.document import Document
from bokeh.model import Model
from bokeh.protocol.message import Message
from panel.io.server import WSHandler
from tornado.web import Application

KINDS = {"PULL-DOC-REQ", "PATCH-DOC", "SERVER-INFO-REQ", "ACK", "OK", "ERROR"}
LAID_OUT = {"RootAdded", "RootRemoved"}  # of whoever serves the page alone
EVENTS = 1000  # in one message; a page's own have under ten
NEW = 100  # models that one message brings along
BYTES = 1 << 27  # of one message with what follows it; a file comes in parts of 10 MB
LINE = 200  # characters of a fault
GZIP, PART = 31, 1 << 20  # zlib's word for gzip; bytes unpacked at once
ROOT = Path(__file__).resolve().parents[3]
OURS = tuple(f"{ROOT / name}{os.sep}" for name in ("engine", "widgets", "workbench"))
LOGS = (
    "bokeh.server.protocol_handler", "bokeh.server.views.ws", "panel.reactive",
    "tornado.application",
)  # fmt: skip


class Received(WSHandler):
    """A page's websocket."""

    _bytes = 0  # of the message that is on its way

    async def on_message(self, fragment: str | bytes) -> None:
        if self.ws_connection is None:  # closed for what came before: a line of each filled the log
            return
        self._bytes += len(fragment)
        if self._bytes > BYTES:
            self.close(1009, "more than a message may have")
            return
        await super().on_message(fragment)

    async def _receive(self, fragment: str | bytes) -> Message[Any] | None:
        message = await super()._receive(fragment)
        if message is not None:
            self._bytes = 0
        return message

    async def _handle(self, message: Message[Any]) -> Any:
        why = unlike_ours(message.msgtype, message.content)
        if why is None and message.msgtype == "PATCH-DOC" and self.connection is not None:
            why = no_text(message.content["events"], self.connection.session.document)
        if why is not None and self.connection is not None:
            return self.connection.error(message, why)
        reply = await super()._handle(message)
        if reply is not None and reply.msgtype == "ERROR":
            reply.content = told(reply.content)
        return reply


def told(content: Any) -> dict[str, Any]:
    """What a browser hears of a fault: one line. The library adds the traceback, with this
    machine's paths."""
    line = " ".join(str(content.get("text", "")).split())
    return {"text": line[:LINE], "traceback": None}


def unlike_ours(kind: Any, content: Any) -> str | None:
    """What in a message no page of ours sends."""
    if not isinstance(kind, str) or kind not in KINDS:
        return f"{str(kind)[:40]!r}: not a message that pages send"
    if kind != "PATCH-DOC":
        return None
    events = content.get("events") if isinstance(content, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        return "a patch has a list of events"
    if len(events) > EVENTS:
        return f"{len(events)} events in one patch; at most {EVENTS}"
    if any(event.get("kind") in LAID_OUT for event in events):
        return "a page's models are laid out by its server"
    new = unpacked = 0
    for one in _objects(events):
        new += one.get("type") == "object"
        if one.get("type") == "bytes" and isinstance(one.get("data"), str):
            unpacked += _unpacked(one["data"], BYTES - unpacked)
        if new > NEW or unpacked > BYTES:
            what = "new models" if new > NEW else "bytes unpacked"
            return f"over {NEW if new > NEW else BYTES} {what} in one patch"
    return None


def no_text(events: list[dict[str, Any]], document: Document) -> str | None:
    """Which text a patch would replace by what is none. Panel hands on what comes of a field that
    takes any value, and our callbacks read it as text."""
    for event in events:
        attr, of = event.get("attr"), event.get("model")
        named = of.get("id") if isinstance(of, dict) else None
        if event.get("kind") != "ModelChanged" or not (isinstance(attr, str) and named):
            continue
        model = document.get_model_by_id(named) if isinstance(named, str) else None
        if isinstance(_held(model, attr), str) and not isinstance(event.get("new"), str | None):
            return f"{attr[:LINE]}: takes text"
    return None


def _held(model: Model | None, attr: str) -> Any:
    """What a property of a model is; None where it is not known or was never set, as the widths
    that a plot's browser tells first."""
    with suppress(UnsetValueError):
        return getattr(model, attr) if model and attr in model.properties() else None
    return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    level = [value]
    while level:
        one = level.pop()
        if isinstance(one, dict):
            yield one
            level += one.values()
        elif isinstance(one, list):
            level += one


def _unpacked(text: str, most: int) -> int:
    """Bytes that the library will make of bytes sent as text, gzip in base64; counted until they
    are more than `most`, those before what is no gzip too: it unpacks them first."""
    found = 0
    try:
        packed = base64.b64decode(text)
        unpacking = zlib.decompressobj(GZIP)
        while packed and found <= most:
            found += len(unpacking.decompress(packed, PART))
            packed = unpacking.unconsumed_tail
            if unpacking.eof:  # another may follow
                packed, unpacking = unpacking.unused_data, zlib.decompressobj(GZIP)
    except (ValueError, zlib.error):  # the library will say so
        pass
    return found


class Short(logging.Filter):
    """Cuts what is said of a message that the library refuses; of our own faults all is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if fault is None or _passed_ours(fault):
            return True
        record.msg, record.args = "a page's message is refused: %.200r", (fault,)
        record.exc_info = record.exc_text = None
        return True


def _passed_ours(fault: BaseException) -> bool:
    """Whether it came out of something that this program's own code was asked to do."""
    trace = fault.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(OURS) and file != __file__:
            return True
        trace = trace.tb_next
    return False


def check_messages(application: Application) -> None:
    """Let `application` (a Bokeh server's) take only such messages as our pages send."""
    for rule in application.wildcard_router.rules:
        if rule.target is WSHandler:
            rule.target = Received
    for name in LOGS:
        logging.getLogger(name).addFilter(Short())
