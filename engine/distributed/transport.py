"""Point-to-point transport: messages over a torch process group, each recorded at both ends.

Tensors go out in one flat message and come back as shaped. The n-th message sent from one rank to
another is the n-th received there, whatever else travels meanwhile; a seal tells where it is not,
or not as it was sent.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.distributed import seal
from engine.distributed.faults import Garbled, PeerGone, told
from engine.distributed.record import Half

ALL_BITS = 0xFF  # every floating type reads this in each byte as NaN
ROUNDS = 8  # of which the quickest tells how far two clocks are apart


@dataclass(frozen=True, slots=True)
class Shape:
    """What a message will hold: one tensor's shape and dtype."""

    sizes: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    @property
    def bytes(self) -> int:
        return torch.Size(self.sizes).numel() * self.dtype.itemsize


@dataclass(slots=True)
class Arriving:
    """A posted receive. `flat`: room for the message, `whole` with its seal."""

    source: int
    number: int
    shapes: Sequence[Shape]
    flat: Tensor
    whole: Tensor
    work: Any
    task: str


class Transport:
    """One rank's end. `now`: seconds since the run opened; `say`: told what the rank waits for.

    Messages travel through host memory; what arrives lies on `device`.
    """

    def __init__(
        self, group: Any, rank: int, ranks: int, device: torch.device | None = None
    ) -> None:
        self.group, self.rank, self.ranks = group, rank, ranks
        self.device = device or torch.device("cpu")
        self.origin = time.perf_counter()
        self.say: Callable[[str], None] = lambda text: None
        self.sent: list[Half] = []
        self.received: list[Half] = []
        self._counts: defaultdict[tuple[int, int], int] = defaultdict(int)
        # Gloo tells that a send is done only to who waits for it; meanwhile its bytes are held.
        self._waits = ThreadPoolExecutor(1, "sends")
        self._leaving: list[tuple[Future[None], int]] = []

    def now(self) -> float:
        return time.perf_counter() - self.origin

    def send(self, target: int, tensors: Sequence[Tensor], task: str = "") -> Tensor:
        """Start sending and return; the tensors may be overwritten at once. Gives the bytes on
        their way, which are held until they have left."""
        parts = [t.detach().reshape(-1).contiguous().view(torch.uint8) for t in tensors]
        number = self._number(self.rank, target)
        whole = seal.sealed(parts, number)
        flat = whole[: -seal.SIZE]
        self.sent.append(Half(self.rank, target, number, flat.numel(), self.now(), task))
        work = self._try(target, lambda: self.group.send([whole], target, number), task)
        self._leaving = [each for each in self._leaving if not each[0].done()]
        self._leaving.append((self._waits.submit(_wait, work, whole), target))
        return flat

    def receive(
        self, source: int, shapes: Sequence[Shape], task: str = "", *, blank: bool = False
    ) -> Arriving:
        """Make room for the next message from `source` and return; `take` gives it.

        `blank`: the room is full of NaN until then, so that who reads too early is found out.
        """
        size = sum(shape.bytes for shape in shapes) + seal.SIZE
        whole = torch.empty(size, dtype=torch.uint8)
        if blank:
            whole.fill_(ALL_BITS)
        number = self._number(source, self.rank)
        work = self._try(source, lambda: self.group.recv([whole], source, number), task)
        return Arriving(source, number, shapes, whole[: -seal.SIZE], whole, work, task)

    def take(self, arriving: Arriving) -> list[Tensor]:
        """Wait for a posted message. Raises PeerGone where its sender went away, Garbled where
        another came, or not as it was sent."""
        self.say(f"waiting for rank {arriving.source} ({arriving.task or 'a message'})")
        self._try(arriving.source, arriving.work.wait, arriving.task)
        wrong = seal.fault(arriving.whole, arriving.number)
        if wrong:
            raise Garbled(arriving.source, arriving.number, arriving.task, wrong)
        self.say("")
        size = arriving.flat.numel()
        half = Half(arriving.source, self.rank, arriving.number, size, self.now(), arriving.task)
        self.received.append(half)
        return unpacked(arriving.flat.to(self.device), arriving.shapes)

    def finish(self) -> None:
        """Wait until all that was sent has left, and until every rank is this far."""
        for leaving, target in self._leaving:
            self.say(f"waiting for rank {target} to take a message")
            self._try(target, leaving.result)
        self._leaving = []
        self.barrier()

    def barrier(self) -> None:
        self.say("waiting at a barrier")
        self._try(-1, lambda: self.group.barrier().wait())
        self.say("")

    def align(self) -> None:
        """Set this clock to rank 0's: half of the quickest of a few round trips is the way back."""
        for other in range(1, self.ranks):
            if self.rank == 0:
                self._answer(other)
            elif self.rank == other:
                self._ask()
        self.forget()

    def forget(self) -> None:
        """Leave out of the record what was sent and received so far."""
        self.sent, self.received = [], []

    def open(self) -> None:
        """Call this moment, the same on all ranks, second nought. A clock that has yet to reach it
        when it is heard of lags by that at least, and is set by it: nothing precedes nought."""
        start = torch.tensor([0.0], dtype=torch.float64)
        if self.rank == 0:
            start[0] = self.now()
        self.group.broadcast(start, 0).wait()
        self.origin += min(float(start), self.now())

    def _answer(self, other: int) -> None:
        for _ in range(ROUNDS):
            self.take(self.receive(other, [Shape((1,))]))
            told = torch.tensor([self.now()], dtype=torch.float64, device=self.device)
            self.send(other, [told])

    def _ask(self) -> None:
        found = []
        for _ in range(ROUNDS):
            asked = self.now()
            self.send(0, [torch.zeros(1, device=self.device)])
            (told,) = self.take(self.receive(0, [Shape((1,), torch.float64)]))
            back = self.now()
            found.append((back - asked, float(told) - (asked + back) / 2))
        self.origin -= min(found)[1]

    def _number(self, source: int, target: int) -> int:
        number = self._counts[source, target]
        self._counts[source, target] += 1
        return number

    def _try(self, peer: int, act: Callable[[], Any], task: str = "") -> Any:
        """What `act` gives. Raises PeerGone with the task: nobody may wait for it yet."""
        try:
            return act()
        except RuntimeError as fault:
            said = f"{task}: " if task else ""
            raise PeerGone(peer, said + told(fault)) from None


def _wait(work: Any, flat: Tensor) -> None:
    """Until a send is done; `flat` is kept that long."""
    work.wait()
    del flat


def unpacked(flat: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
    """A message's tensors from its bytes."""
    found, at = [], 0
    for shape in shapes:
        part = flat[at : at + shape.bytes]
        if part.storage_offset() % shape.dtype.itemsize:
            part = part.clone()
        found.append(part.view(shape.dtype).reshape(shape.sizes))
        at += shape.bytes
    return found
