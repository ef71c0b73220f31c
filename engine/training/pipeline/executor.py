"""Executor of a pipeline's plan: the virtual clock alone, real ranks, or one above the other."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from engine.core.events import AnyEvent
from engine.core.executor import Executor
from engine.core.run import Live
from engine.distributed.merge import lane
from engine.training.pipeline.job import Job
from engine.training.plan.times import Costs


@dataclass(frozen=True)
class Carried:
    """What real ranks did. `events`: of one step, in time order; `costs`: the passes and transfers
    as measured in it; `error`: of the gradients against one process's, relative, None where the
    model is too large to hold against it."""

    events: list[AnyEvent]
    costs: Costs
    error: float | None


class PipelineExecutor(Executor):
    """Concrete ones lie in `executors`. `modelled`: the virtual clock plays the plan too, with what
    was measured where ranks did it."""

    folder = "engine.training.pipeline.executors"
    modelled: ClassVar[bool] = False

    def lanes(self, ranks: int) -> list[str]:
        """The lanes of a plan of so many ranks, in order."""
        return [lane(rank) for rank in range(ranks)]

    @abstractmethod
    def carry_out(self, job: Job, live: Live) -> Carried | None:
        """One step on real ranks; None where there are none. Raises BadInput, RankLost among it."""
