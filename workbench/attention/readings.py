"""Readings: requests whose attention is being looked at, each computed in a thread of its own.

One at a time is computed; the least recently asked for goes once there are more than a few.
"""

import atexit
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from engine.core.errors import BadInput
from engine.inference.executors.tensors.head_tiles import AttentionTiles, Grid
from engine.inference.executors.tensors.sequence_attention import SequenceAttention
from workbench.attention.ended import Ended

KEPT = 4
LEAVE = 5.0  # seconds a process that ends waits for a chunk under way


class _Gone(Exception):
    """Nobody looks at this any more."""


@dataclass(eq=False)
class Reading:
    """A request on its way to tiles. `key` names it in addresses; `done` of `of` tokens are
    computed; `failure` is one line where it came to nothing."""

    ended: Ended
    key: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    done: int = 0
    of: int = 0
    failure: str = ""
    texts: list[str] = field(default_factory=list)
    tiles: AttentionTiles | None = None
    grid: Grid | None = None
    is_gone: bool = False
    over: threading.Event = field(default_factory=threading.Event)  # nothing computes any more

    def compute(self, turn: threading.Lock) -> None:
        """Put the request through its model once more, when it is its turn."""
        try:
            self._compute(turn)
        finally:
            self.over.set()
            atexit.unregister(self.leave)

    def _compute(self, turn: threading.Lock) -> None:
        try:
            with turn:
                self._tell(0, len(self.ended.tokens_N))
                model = self.ended.open()
                self.texts = self.ended.texts()
                tiles = AttentionTiles(SequenceAttention(model, self.ended.tokens_N, self._tell))
                self.grid, self.tiles = tiles.grid(), tiles
        except _Gone:
            self.failure = "stopped"
        except BadInput as fault:
            self.failure = str(fault)
        except Exception as fault:  # a thread of its own: whoever looks is told
            self.failure = f"{type(fault).__name__}: {fault}"

    def _tell(self, done: int, of: int) -> None:
        if self.is_gone:
            raise _Gone
        self.done, self.of = done, of

    def stop(self) -> None:
        """Compute no further."""
        self.is_gone = True

    def leave(self) -> None:
        """The process ends: a thread still in torch's code then would abort it."""
        self.stop()
        self.over.wait(LEAVE)


class Readings:
    """The readings of one app, by key."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, Reading] = OrderedDict()
        self._turn, self._lock = threading.Lock(), threading.Lock()

    def begin(self, ended: Ended) -> Reading:
        """Compute a request's attention from now on."""
        made = Reading(ended)
        with self._lock:
            self._by_key[made.key] = made
            while len(self._by_key) > KEPT:
                self._by_key.popitem(last=False)[1].stop()
        atexit.register(made.leave)
        thread = threading.Thread(
            target=made.compute, args=(self._turn,), name="attention", daemon=True
        )
        thread.start()
        return made

    def tiles(self, key: str) -> AttentionTiles:
        """The tiles of that key. Raises BadInput where there are none."""
        with self._lock:
            found = self._by_key.get(key)
            if found is None or found.tiles is None:
                raise BadInput("attention: no longer kept here; reload the page")
            self._by_key.move_to_end(key)
            return found.tiles

    def end(self, reading: Reading) -> None:
        """Nobody looks at this any more."""
        reading.stop()
        with self._lock:
            self._by_key.pop(reading.key, None)
