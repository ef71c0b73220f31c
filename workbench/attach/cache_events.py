"""Events of another server's KV cache, told as our pages: vLLM's and SGLang's ZeroMQ publisher.

A message is (topic, number, msgpack of a batch); a batch is [time, events, …] or a map of the same,
an event [kind, …] or a map (vllm/distributed/kv_events.py). They tell of full blocks in the prefix
tree alone: which request holds a block is not published, so every page here is a cached one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import zmq

from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Mark, Page
from engine.core.limits import limits

KINDS = {  # the fields of an event, in the order of an array
    "BlockStored": ("block_hashes", "parent_block_hash", "token_ids", "block_size"),
    "BlockRemoved": ("block_hashes",),
    "AllBlocksCleared": (),
}
OWNER = "stored"
AT_ONCE = 1000  # messages taken before the metrics are looked at again
LARGEST = 16 << 20  # bytes of one message
ROOT = -1


class CacheEvents:
    """A subscriber to `endpoint` (tcp://host:port). Raises BadInput for another address.

    `emit` hears `Page` events; pages are numbered here, the lowest free number first to be taken.
    """

    def __init__(self, endpoint: str, emit: Callable[[AnyEvent], None]) -> None:
        if not endpoint.startswith("tcp://"):
            raise BadInput(f"cache events {endpoint!r}: not an address; write tcp://host:port")
        self.emit = emit
        self.pages: dict[Any, int] = {}  # block hash -> page
        self.depth: dict[int, int] = {}  # page -> first token
        self.free: list[int] = []
        self.last = -1  # number of the last message
        self.missed = self.unread = 0
        self._line = zmq.Context.instance().socket(zmq.SUB)
        try:
            self._line.setsockopt(zmq.MAXMSGSIZE, LARGEST)
            self._line.setsockopt(zmq.LINGER, 0)
            self._line.connect(endpoint)
            self._line.setsockopt_string(zmq.SUBSCRIBE, "")
        except zmq.ZMQError as fault:
            self._line.close()
            raise BadInput(f"cache events {endpoint!r}: {fault}; write tcp://host:port") from None

    def close(self) -> None:
        self._line.close()

    def take(self, now: float, wait: float) -> None:
        """Tell what has come, waiting up to `wait` seconds for the first message."""
        if not self._line.poll(int(1000 * wait)):
            return
        for _ in range(AT_ONCE):
            try:
                parts = self._line.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._message(now, parts)

    def _message(self, now: float, parts: list[bytes]) -> None:
        if len(parts) != 3 or len(parts[1]) != 8:
            self._strange(now)
            return
        number = int.from_bytes(parts[1], "big")
        if self.last >= 0 and number > self.last + 1:
            self.missed += number - self.last - 1
            self.emit(Mark(now, "cache", "missed", f"{self.missed} messages were missed"))
        self.last = number
        try:
            told = list(_events(msgspec.msgpack.decode(parts[2])))
        except (msgspec.DecodeError, ValueError, TypeError, KeyError, IndexError):
            self._strange(now)
            return
        for kind, fields in told:
            self._event(now, kind, fields)

    def _strange(self, now: float) -> None:
        self.unread += 1
        if self.unread == 1:
            self.emit(Mark(now, "cache", "strange", "a message is not of vLLM's form: left out"))

    def _event(self, now: float, kind: str, fields: dict[str, Any]) -> None:
        if kind == "AllBlocksCleared":
            for key in list(self.pages):
                self._remove(now, key, "all cleared")
        elif kind == "BlockRemoved":
            for key in fields["block_hashes"]:
                self._remove(now, key, "evicted")
        else:
            self._store(now, fields)

    def _store(self, now: float, fields: dict[str, Any]) -> None:
        size, above = fields["block_size"], self.pages.get(fields["parent_block_hash"], ROOT)
        for key in fields["block_hashes"]:
            if key in self.pages:
                above = self.pages[key]
                continue
            if len(self.pages) >= limits().entries:
                return
            page = self.free.pop() if self.free else len(self.pages)
            start = self.depth[above] + size if above != ROOT else 0
            self.pages[key], self.depth[page] = page, start
            self.emit(Page(now, page, OWNER, "take", start, size))
            self.emit(Page(now, page, OWNER, "index", start, size, above))
            self.emit(Page(now, page, OWNER, "drop"))
            above = page

    def _remove(self, now: float, key: Any, why: str) -> None:
        page = self.pages.pop(key, None)
        if page is not None:
            self.depth.pop(page)
            self.free.append(page)
            self.emit(Page(now, page, OWNER, "free", why=why))


def _events(batch: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and fields of each event of a batch. Raises where it is no batch."""
    events = batch["events"] if isinstance(batch, dict) else batch[1]
    for event in events:
        kind = event["type"] if isinstance(event, dict) else event[0]
        names = KINDS[kind]
        values = event if isinstance(event, dict) else dict(zip(names, event[1:], strict=False))
        fields = {name: values[name] for name in names}
        _check(fields)
        yield kind, fields


def _check(fields: dict[str, Any]) -> None:
    """Raises where a field is of another type than the publisher's."""
    keys = [*fields.get("block_hashes", []), fields.get("parent_block_hash")]
    if not all(key is None or isinstance(key, int | bytes | str) for key in keys):
        raise TypeError("a block hash")
    size = fields.get("block_size", 1)
    if not isinstance(size, int) or not 0 < size <= 1 << 20:
        raise TypeError("a block's size")
