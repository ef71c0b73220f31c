"""Process group of one mesh axis: its collectives, each recorded as a span and as bytes by link.

Bytes are those that gloo's algorithms put on each connection: an all-reduce is a ring towards the
rank before, 2(n-1)/n of the tensor; an all-gather one towards the rank after; an all-to-all goes
straight. A reduce-scatter is an all-to-all and a sum here: gloo's own sends a whole all-reduce.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from engine.core.events import Span
from engine.core.tags import tag
from engine.distributed.device import settle
from engine.distributed.faults import PeerGone, told
from engine.distributed.merge import moved
from engine.distributed.pieces import in_pieces
from engine.distributed.program import Compute, Program, Receive, Send, Wait, run
from engine.distributed.rank import Rank
from engine.hardware.collectives import all_reduce_bytes

T = TypeVar("T")


@dataclass(slots=True)
class Reducing:
    """An all-reduce under way; `wait` ends it."""

    axis: "Axis"
    work: Any
    size: int
    start: float
    task: str

    def wait(self) -> None:
        axis, waited = self.axis, self.axis.rank.now()
        axis.attempt("all_reduce", self.task, self.work.wait)
        axis.ended("all_reduce", waited, 0.0, self.task)
        axis.carried(-1, all_reduce_bytes(axis.size, self.size), self.start, self.task)


class Axis:
    """`members`: the ranks, ascending; `at`: this one's place among them; `name`: such as tp."""

    def __init__(self, rank: Rank, name: str, members: Sequence[int]) -> None:
        self.rank, self.name, self.members = rank, name, list(members)
        self.at, self.size = self.members.index(rank.rank), len(self.members)
        self.group: Any = None
        if self.size > 1:
            # A rank is in many groups, in some twice: the name tells which its members mean.
            number = rank.meeting.count(str(members))
            said = f"{members} {number}"
            # A member that fails at once may leave before all are connected: it is to blame.
            self.group = self.begun(
                "connect", "", lambda: rank.meeting.collective(said, self.at, self.size)
            )

    def all_reduce(self, x: Tensor, task: str = "", largest: bool = False) -> Tensor:
        """The sum (or the largest) over all members; `x` is left alone."""
        if self.size == 1:
            return x
        found, start = x.detach().clone().contiguous(), self.rank.now()
        self.attempt("all_reduce", task, lambda: self._reduce(found, largest).wait())
        self.ended("all_reduce", start, all_reduce_bytes(self.size, found.nbytes), task)
        self.carried(-1, all_reduce_bytes(self.size, found.nbytes), start, task)
        return found

    def start_all_reduce(self, flat: Tensor, task: str = "") -> Reducing:
        """Begin to replace `flat` by the sum over all members, beside what else is done."""
        assert self.size > 1
        work = self.begun("all_reduce", task, lambda: self._reduce(flat, False))
        return Reducing(self, work, flat.nbytes, self.rank.now(), task)

    def all_gather(self, x: Tensor, dim: int = 0, task: str = "") -> Tensor:
        """All members' `x` one after another along `dim`; shapes are equal."""
        if self.size == 1:
            return x
        part = x.detach().movedim(dim, 0).contiguous()
        found, start = part.new_empty(self.size * len(part), *part.shape[1:]), self.rank.now()
        self.attempt("all_gather", task, lambda: self.group._allgather_base(found, part).wait())
        sent = self._ring(found.nbytes)
        self.ended("all_gather", start, sent, task)
        self.carried(1, sent, start, task)
        return found.movedim(0, dim)

    def reduce_scatter(self, x: Tensor, dim: int = 0, task: str = "") -> Tensor:
        """This member's part along `dim` of the sum over all members."""
        if self.size == 1:
            return x
        start, whole = self.rank.now(), x.detach().movedim(dim, 0).contiguous()
        parts = self._exchange("reduce_scatter", whole, task)
        found = parts.unflatten(0, (self.size, -1)).sum(0)
        self.ended("reduce_scatter", start, self._ring(whole.nbytes), task)
        self._straight(whole.nbytes, start, task)
        return found.movedim(0, dim)

    def all_to_all(self, x: Tensor, task: str = "") -> Tensor:
        """Piece i of `x` along its first dimension goes to member i; what came from each."""
        if self.size == 1:
            return x
        start, whole = self.rank.now(), x.detach().contiguous()
        found = self._exchange("all_to_all", whole, task)
        self.ended("all_to_all", start, self._ring(whole.nbytes), task)
        self._straight(whole.nbytes, start, task)
        return found

    def follow(self, program: Program[T]) -> T:
        """Run a program whose ranks are the members' places; what it returned."""
        return run(program, self._do)

    def barrier(self) -> None:
        """Wait for all members."""
        if self.size > 1:
            self.attempt("barrier", "", lambda: self.group.barrier().wait())

    def attempt(self, what: str, task: str, act: Callable[[], Any]) -> None:
        """Do it to the end. Raises PeerGone where a member went away."""

        def done() -> None:
            act()
            settle(self.rank.device)

        self.begun(what, task, done)

    def begun(self, what: str, task: str, act: Callable[[], T]) -> T:
        """What `act` gives, said while it waits. Raises PeerGone where a member went away."""
        self.rank.transport.say(f"waiting at {what} of {self.name} {task}".rstrip())
        try:
            return act()
        except RuntimeError as fault:
            peer = self.members[(self.at + 1) % self.size]
            raise PeerGone(peer, told(fault)) from None
        finally:
            self.rank.transport.say("")

    def ended(self, what: str, start: float, sent: float, task: str) -> None:
        """Note a collective that this rank stood at since `start`."""
        said = self._tag(task)
        self.rank.emit(Span(self.rank.now(), self.rank.lane, what, start, bytes=sent, tag=said))

    def carried(self, ahead: int, size: float, start: float, task: str) -> None:
        """Note bytes to the member `ahead` places further round."""
        target = self.members[(self.at + ahead) % self.size]
        for event in moved(self.rank.rank, target, int(size), start, self.rank.now(), task):
            self.rank.emit(event)

    def _tag(self, task: str) -> str:
        """A task that is facts already stays so."""
        axis = tag(axis=self.name)
        return f"{task} {axis}" if "=" in task else tag(task=task, axis=self.name)

    def _ring(self, size: float) -> float:
        return size * (self.size - 1) / self.size

    def _straight(self, size: float, start: float, task: str) -> None:
        for ahead in range(1, self.size):
            self.carried(ahead, size / self.size, start, task)

    def _reduce(self, x: Tensor, largest: bool) -> Any:
        options = dist.AllreduceOptions()
        kind = dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM
        options.reduceOp = dist.ReduceOp(kind)
        return self.group.allreduce([x], options)

    def _exchange(self, what: str, whole: Tensor, task: str) -> Tensor:
        found = torch.empty_like(whole)
        self.attempt(what, task, lambda: self.group.alltoall_base(found, whole, [], []).wait())
        return found

    def _do(self, step: Any) -> object:
        transport = self.rank.transport
        if isinstance(step, Send):
            transport.send(self.members[step.target], step.tensors, step.task)
            return None
        if isinstance(step, Receive):
            return transport.receive(self.members[step.source], step.shapes, step.task)
        start = self.rank.now()
        if isinstance(step, Wait):
            found = transport.take(step.ticket)
            self.ended("receive", start, 0.0, step.ticket.task)
            return found
        assert isinstance(step, Compute)
        said = self._tag(step.task)
        return in_pieces(self.rank, step.name, step.work, said, step.flops, step.bytes)
