"""Backward method: what it keeps from the forward, what it recomputes."""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from engine.core.config import Policy
from engine.training.streamed.model import Model
from engine.training.streamed.objectives import Batch, Objective

Phase = Callable[[str], AbstractContextManager[None]]  # told what is being done, by name


def untold(_name: str) -> AbstractContextManager[None]:
    """A phase that nobody watches."""
    return nullcontext()


class Method(Policy):
    """Concrete ones lie in `methods`."""

    folder = "engine.training.streamed.methods"

    @abstractmethod
    def gradients(
        self, model: Model, batch: Batch, objective: Objective, phase: Phase = untold
    ) -> float:
        """The loss; gradients are added to the weights' `.grad`."""
