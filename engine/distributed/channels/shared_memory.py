"""Channels over memory that ranks share: packets with flags (LL), bulk copies (HB), and a proxy.

A put is a real one-sided write into the peer's memory, a signal a counter there, a wait a look at
the own one again and again. Stores of a processor become visible in their order on x86; elsewhere
nothing here fences them.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from typing import ClassVar, Literal, cast

import numpy as np
from torch import Tensor, from_numpy

from engine.core.config import knob
from engine.distributed.channel import (
    Channel,
    Fault,
    Flush,
    Hold,
    Program,
    Put,
    Signal,
    Take,
    Wait,
    pieces_of,
    programs,
)
from engine.distributed.collective import Transfers
from engine.distributed.rank import Rank

NUMBER = np.dtype(np.float32)
PACKET = np.dtype([("data", NUMBER), ("flag", np.uint32)])  # one store of eight bytes
COUNT = np.dtype(np.int64)
FOREVER = float("inf")
HELD, IMPATIENT = 5.0, 0.1  # seconds after which a fault's hold, and its waits, give up


class Direct:
    """Threads of the rank copy by themselves."""

    def __init__(self, memory: "Window") -> None:
        self.memory = memory

    def put(self, step: Put, numbers: np.ndarray, start: int) -> None:
        self.memory.inboxes[step.target][start : start + len(numbers)] = numbers

    def signal(self, step: Signal) -> None:
        self.memory.semaphores[step.target][self.memory.rank] += 1

    def wait(self, step: Wait) -> None:
        own = self.memory.semaphores[self.memory.rank]
        until(lambda: own[step.source] >= step.times, self.memory.patience)

    def take(self, step: Take, start: int, count: int) -> np.ndarray:
        found: np.ndarray = self.memory.inboxes[self.memory.rank][start : start + count].copy()
        return found

    def flush(self) -> None:
        """Copies are made when a put returns."""


class Packets(Direct):
    """Data and flag in one store: what has its flag is there, and no signal is needed."""

    def put(self, step: Put, numbers: np.ndarray, start: int) -> None:
        packets = np.empty(len(numbers), PACKET)
        packets["data"], packets["flag"] = numbers, step.number
        there = self.memory.inboxes[step.target].view(np.uint64)
        there[start : start + len(numbers)] = packets.view(np.uint64)

    def signal(self, step: Signal) -> None:
        """Each packet is its own."""

    def wait(self, step: Wait) -> None:
        """`take` looks at the flags."""

    def take(self, step: Take, start: int, count: int) -> np.ndarray:
        there = self.memory.inboxes[self.memory.rank][start : start + count]
        until(lambda: bool((there["flag"] >= step.number).all()), self.memory.patience)
        found: np.ndarray = there["data"].copy()
        return found


class Proxied(Direct):
    """A thread of the rank's processor does what it is asked for, in order."""

    def __init__(self, memory: "Window") -> None:
        super().__init__(memory)
        self.asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.sent = self.done = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def put(self, step: Put, numbers: np.ndarray, start: int) -> None:
        """`numbers` are read when the proxy comes to it: they stand still until a flush."""
        self._ask(lambda: Direct.put(self, step, numbers, start))

    def signal(self, step: Signal) -> None:
        self._ask(lambda: Direct.signal(self, step))

    def flush(self) -> None:
        until(lambda: self.done == self.sent)

    def _ask(self, act: Callable[[], None]) -> None:
        self.sent += 1
        self.asked.put(act)

    def _serve(self) -> None:
        while True:
            self.asked.get()()
            self.done += 1


class OverMemory(Channel):
    """What lies in an inbox, and what does a rank's part; an empty inbox reads as NaN."""

    number: ClassVar[np.dtype] = NUMBER
    end: ClassVar[type[Direct]] = Direct

    def inbox(self, numbers: int) -> np.ndarray:
        blank = np.zeros(numbers, self.number)
        (blank if self.number == NUMBER else blank["data"])[:] = np.nan
        return blank


class MemoryHB(OverMemory):
    """Memory channel, high bandwidth: a whole chunk, then a signal."""

    kind: Literal["memory_hb"] = knob("memory_hb", doc="copies of whole chunks, then a signal")


class MemoryLL(OverMemory):
    """Memory channel, low latency: each four bytes beside a flag, which halves the bandwidth."""

    wire: ClassVar[float] = 2.0
    signals: ClassVar[bool] = False
    number: ClassVar[np.dtype] = PACKET
    end: ClassVar[type[Direct]] = Packets
    kind: Literal["memory_ll"] = knob("memory_ll", doc="packets of four bytes and a flag")


class Port(OverMemory):
    """Port channel: a proxy of the processor is asked, and starts the transfer."""

    end: ClassVar[type[Direct]] = Proxied
    kind: Literal["port"] = knob("port", doc="a proxy thread that puts and signals when asked")
    proxy: float = knob(2e-6, "until a proxy has heard (assumed)", low=0.0, high=1.0, unit="s")

    @property
    def asked(self) -> float:
        return self.proxy


class Window:
    """The memory of one collective, by rank: `inboxes`, of `sizes` numbers; `semaphores`, `taken`
    [rank, source]: signals that a rank has had from each other one, and puts of it that it has
    taken. `patience`: seconds after which a wait goes on without what it waits for."""

    def __init__(
        self, rank: Rank, channel: OverMemory, sizes: Sequence[int], patience: float = FOREVER
    ) -> None:
        self.rank, self.patience, ranks = rank.rank, patience, rank.ranks
        blank, counts = channel.inbox(sizes[self.rank]), 2 * ranks * COUNT.itemsize
        own = SharedMemory(create=True, size=counts + max(1, blank.nbytes))
        name = f"window/{rank.meeting.count('window')}"
        try:
            rank.meeting.store.set(f"{name}/{self.rank}", own.name)
            names = [rank.meeting.store.get(f"{name}/{each}").decode() for each in range(ranks)]
            self._shared = [
                own if each == self.rank else SharedMemory(name) for each, name in enumerate(names)
            ]
            rank.transport.barrier()
        finally:
            own.unlink()  # it goes when the last rank lets go of it, whatever becomes of the ranks
        buffers = [cast(memoryview, shared.buf) for shared in self._shared]
        pairs = list(zip(buffers, sizes, strict=True))
        self.inboxes = [np.frombuffer(b, blank.dtype, size, counts) for b, size in pairs]
        both = [np.frombuffer(buffer, COUNT, 2 * ranks) for buffer, _ in pairs]
        self.semaphores = [each[:ranks] for each in both]
        self.taken = [each[ranks:] for each in both]
        both[self.rank][:] = 0
        self.inboxes[self.rank][:] = blank
        rank.transport.barrier()

    def close(self) -> None:
        self.inboxes, self.semaphores, self.taken = [], [], []
        for shared in self._shared:
            with suppress(BufferError):  # a view that is left goes with the process
                shared.close()


def carry_out(
    rank: Rank, plan: Transfers, x: Tensor, channel: OverMemory, fault: Fault = "none"
) -> tuple[Tensor, int]:
    """(what this rank has in the end, bytes that it put) of a plan among all ranks; `x`, of four
    bytes a number and as long on every rank, is left alone."""
    flat = x.detach().reshape(-1).numpy().astype(NUMBER)
    made, edge = programs(plan, rank.ranks, fault), plan.bounds(len(flat))
    # Pieces differ by one number at most; an inbox has room for all at their longest, and a shift.
    longest = -(-len(flat) // plan.pieces)
    sizes = [pieces_of(each) * longest + 1 for each in made]
    window = Window(rank, channel, sizes, FOREVER if fault == "none" else IMPATIENT)
    program = made[rank.rank]
    if not channel.signals:  # where there is no signal none comes early
        early = fault == "early_signal"
        program = [step for step in program if not (early and isinstance(step, Hold))]
    sent = _follow(window, channel.end(window), program, flat, plan, edge, longest)
    rank.transport.barrier()
    window.close()
    return from_numpy(flat).reshape(x.shape), sent


def _follow(
    window: Window, end: Direct, program: Program, flat: np.ndarray, plan: Transfers,
    edge: list[int], longest: int,
) -> int:  # fmt: skip
    first, sent = flat.copy() if plan.original else flat, 0
    for step in program:
        if isinstance(step, Put):
            part = first[edge[step.first] : edge[step.last]]
            end.put(step, part, step.place * longest + step.shift)
            sent += part.nbytes
        elif isinstance(step, Signal):
            end.signal(step)
        elif isinstance(step, Wait):
            end.wait(step)
        elif isinstance(step, Flush):
            end.flush()
        elif isinstance(step, Hold):
            taken, here = window.taken[step.target], window.rank
            until(lambda: taken[here] >= step.number, HELD)  # noqa: B023
        else:
            there = flat[edge[step.first] : edge[step.last]]
            part = end.take(step, step.place * longest, len(there))
            there[:] = there + part if step.add else part
            window.taken[window.rank][step.source] += 1
    return sent


def until(ready: Callable[[], bool], seconds: float = FOREVER) -> None:
    """Look again and again, other threads having their turn between."""
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0)
