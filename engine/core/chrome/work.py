"""The counted work of a trace's operations, and which of its spans did it.

A profiler writes an operation's shapes beside the call on the processor. Where kernels ran for it
on an accelerator (same external id), the work belongs to the longest of them, not to the call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from engine.core.chrome.pieces import Entry

KERNEL = "kernel"
PLAIN = msgspec.Raw(b"")


@dataclass(frozen=True, slots=True)
class Done:
    """What one operation did, and the tag that says how large it was."""

    flops: float
    bytes: float
    tag: str


@dataclass(frozen=True, slots=True)
class Work:
    """`names` of the operations that `count(name, dims, types)` knows; it may say None."""

    names: frozenset[str]
    count: Callable[[str, Any, Any], Done | None]


NOTHING = Work(frozenset(), lambda name, dims, types: None)


class Shapes(msgspec.Struct, gc=False):
    """The arguments that matter here, shapes and types still as text."""

    dims: msgspec.Raw = msgspec.field(default=PLAIN, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=PLAIN, name="Input type")
    external: int = msgspec.field(default=-1, name="External id")


SHAPES = msgspec.json.Decoder(Shapes)


class Counted:
    """Which spans did counted work; `kernels` are the rows of accelerator kernels."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.known: dict[tuple[str, bytes, bytes], Done | None] = {}
        self.rows: list[tuple[int, int, Done]] = []  # row, external id, what it did
        self.kernels: list[tuple[int, int]] = []  # row, external id
        self.moved: list[tuple[int, str]] = []  # row and tag of kernels that got work

    def count(self, entries: list[Entry], first: int, tags: list[str]) -> None:
        """Look at spans that become rows `first` on, and say in `tags` what they did."""
        names = self.work.names
        for place, entry in enumerate(entries):
            if entry.cat == KERNEL or entry.name in names:
                self._one(entry, first + place, place, tags)

    def _one(self, entry: Entry, row: int, place: int, tags: list[str]) -> None:
        try:
            shapes = SHAPES.decode(entry.args)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if entry.cat == KERNEL:
            self.kernels.append((row, shapes.external))
            return
        key = (entry.name, bytes(shapes.dims), bytes(shapes.types))
        if key not in self.known:
            self.known[key] = self._told(*key)
        done = self.known[key]
        if done is not None:
            tags[place] = done.tag
            self.rows.append((row, shapes.external, done))

    def _told(self, name: str, dims: bytes, types: bytes) -> Done | None:
        try:
            return self.work.count(
                name, msgspec.json.decode(dims or b"[]"), msgspec.json.decode(types or b"[]")
            )
        except (msgspec.DecodeError, TypeError, ValueError, IndexError, RecursionError):
            return None

    def tell(self, tags: dict[str, int], tag: np.ndarray) -> None:
        """Give kernels the tag of the operation they ran for."""
        for row, text in self.moved:
            tag[row] = tags.setdefault(text, len(tags))


def give_to_kernels(
    counted: Counted, took: np.ndarray, flops: np.ndarray, size: np.ndarray
) -> None:
    """Fill in each row's flops and bytes: an operation's longest kernel's, else its own."""
    longest: dict[int, int] = {}
    for row, external in counted.kernels:
        if external >= 0 and took[row] > took[longest.get(external, row)] - 1e-12:
            longest[external] = row
    for own, external, done in counted.rows:
        row = longest.get(external, own) if external >= 0 else own
        if row != own:
            counted.moved.append((row, done.tag))
        flops[row] += done.flops
        size[row] += done.bytes
