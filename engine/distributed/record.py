"""Record of a rank, as bytes without pickle: its events, its halves of transfers, arrays."""

from typing import Any

import msgspec
import numpy as np

from engine.core.events import AnyEvent


class Half(msgspec.Struct, frozen=True):
    """One end of a transfer. `number` counts the messages from `source` to `target`.

    `time`: seconds since the run opened; when the sender began or the receiver had it.
    """

    source: int
    target: int
    number: int
    bytes: int
    time: float
    task: str = ""


class Record(msgspec.Struct):
    """A rank's account. `failed`: what it raised; `peer`: the rank it blames, -1 for none;
    `refused`: whether that is a person's input and no fault of the rank; `done`: whether it is the
    last one of that rank."""

    rank: int
    events: list[AnyEvent] = []
    sent: list[Half] = []
    received: list[Half] = []
    arrays: dict[str, tuple[str, list[int], bytes]] = {}
    failed: str = ""
    peer: int = -1
    refused: bool = False
    done: bool = True

    def put(self, name: str, array: np.ndarray) -> None:
        """Keep an array of numbers under `name`."""
        whole = np.ascontiguousarray(array)
        self.arrays[name] = (whole.dtype.str, list(array.shape), whole.tobytes())

    def array(self, name: str) -> np.ndarray:
        """The array of that name, writable."""
        dtype, shape, data = self.arrays[name]
        return np.frombuffer(data, np.dtype(dtype)).reshape(shape).copy()


def encode(record: Record) -> bytes:
    return msgspec.msgpack.encode(record)


def decode(data: bytes) -> Record:
    """Checked against the types above; nothing in it is run."""
    found: Any = msgspec.msgpack.decode(data, type=Record)
    assert isinstance(found, Record)
    return found
