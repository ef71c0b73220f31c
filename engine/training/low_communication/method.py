"""Method: how replicas of one model, each with its own text, come to agree on weights."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

from engine.core.config import Policy
from engine.distributed.program import Program
from engine.training.low_communication.replica import Replica


class Loop(Protocol):
    """A replica's side of a method, with its state."""

    def step(self, step: int, rate: float) -> Program[None]:
        """One training step and whatever is exchanged after it."""
        ...

    def finish(self) -> Program[None]:
        """Take in what still travels."""
        ...


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a replica of a method puts on the wire, for models too large to be run here.

    `bytes` at each exchange, one every `every` steps; `hidden`: steps that may pass before the
    exchange is waited for; `messages`: how many follow one another; `beside`: bytes more between
    two exchanges that nobody waits for.
    """

    bytes: float
    every: float
    hidden: float
    messages: int
    beside: float = 0.0


class Method(Policy):
    """Concrete ones lie one to a file in `methods`."""

    folder = "engine.training.low_communication.methods"

    @abstractmethod
    def loop(self, replica: Replica) -> Loop:
        """The loop of one replica. Raises BadInput where knobs do not fit together."""

    @abstractmethod
    def traffic(self, parameters: int, replicas: int) -> Traffic:
        """What each of `replicas` sends for a model of that size, by the codec's own count."""
