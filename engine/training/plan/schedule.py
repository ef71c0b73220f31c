"""Pipeline schedule: from ranks, microbatches and pass times to a plan of passes."""

from abc import abstractmethod
from dataclasses import dataclass

from engine.core.config import Policy
from engine.training.plan.actions import Plan


@dataclass(frozen=True)
class Pipe:
    """What a schedule may know. Times are seconds of one microbatch through a whole rank.

    `limit`: activations (microbatches through a whole rank) that a rank may hold; `kept`: the share
    of one that stays after the backward for the input, until that for the weights.
    """

    ranks: int
    microbatches: int
    forward: float = 1.0
    backward_input: float = 1.0
    backward_weight: float = 1.0
    transfer: float = 0.0
    limit: float = float("inf")
    kept: float = 1.0


class PipelineSchedule(Policy):
    """Orders the passes of every rank; concrete ones lie in `schedules`."""

    folder = "engine.training.plan.schedules"

    @abstractmethod
    def plan(self, pipe: Pipe) -> Plan:
        """The passes of each rank in order. Raises BadInput where it does not fit the pipe."""
