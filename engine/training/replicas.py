"""The copies of a model that learn together: one alone, or one on each rank of a run.

Each takes its rows of a step and its gradients become the mean of all; weights stay equal bit for
bit because every copy does the same with the same numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.events import Level, Span
from engine.core.tags import tag
from engine.distributed.average import from_first, mean
from engine.distributed.faults import Fault
from engine.distributed.rank import Rank

GRADIENTS = "gradients"  # task of the messages


class Replicas(ABC):
    """`rank` of `ranks` copies."""

    rank, ranks = 0, 1

    @abstractmethod
    def enter(self, phase: str, step: int) -> None:
        """Say what is done next: forward, backward, collective, optimiser, checkpoint …"""

    @abstractmethod
    def average(self, tensors: Sequence[Tensor]) -> None:
        """The mean over all copies, in place; float32."""

    @abstractmethod
    def follow_first(self, tensors: Sequence[Tensor]) -> None:
        """The first copy's, in place."""

    @abstractmethod
    def wait(self) -> None:
        """Until all copies are this far."""


class Alone(Replicas):
    """One copy: nothing to agree on."""

    def enter(self, phase: str, step: int) -> None:
        pass

    def average(self, tensors: Sequence[Tensor]) -> None:
        pass

    def follow_first(self, tensors: Sequence[Tensor]) -> None:
        pass

    def wait(self) -> None:
        pass


class OnRanks(Replicas):
    """A copy on each rank. Of every `report`-th step the phases and transfers are emitted."""

    def __init__(self, rank: Rank, report: int, fault: Fault | None = None) -> None:
        self._rank, self._report, self._fault = rank, report, fault
        self.rank, self.ranks = rank.rank, rank.ranks
        self._phase, self._step, self._since = "", 0, 0.0
        self._sent = 0

    def enter(self, phase: str, step: int) -> None:
        now, told = self._rank.now(), self._told(self._step)
        if self._phase and told:
            task = tag(task=f"step {self._step}")
            self._rank.emit(Span(now, self._rank.lane, self._phase, self._since, tag=task))
        if step != self._step or phase == "checkpoint":
            # What a checkpoint leaves behind has been told before it is written.
            self._account(now, told)
        self._phase, self._step, self._since = phase, step, now
        self._rank.enter(f"{phase} of step {step}")
        if self._fault is not None:
            self._fault.strike(self.rank, phase, step)

    def average(self, tensors: Sequence[Tensor]) -> None:
        flat = mean(self._rank.transport, torch.cat([t.reshape(-1) for t in tensors]), GRADIENTS)
        at = 0
        for tensor in tensors:
            tensor.copy_(flat[at : at + tensor.numel()].view_as(tensor))
            at += tensor.numel()

    def follow_first(self, tensors: Sequence[Tensor]) -> None:
        from_first(self._rank.transport, list(tensors), "resume")

    def wait(self) -> None:
        self._rank.transport.barrier()

    def _told(self, step: int) -> bool:
        return (step + 1) % self._report == 0

    def _account(self, now: float, told: bool) -> None:
        """Count what a step sent; of most steps the transfers themselves are forgotten."""
        self._sent += sum(half.bytes for half in self._rank.transport.sent)
        if told:
            self._rank.emit(Level(now, self._rank.lane, "bytes_sent", float(self._sent)))
        else:
            self._rank.transport.forget()
        if self._rank.record.events:
            self._rank.tell()
