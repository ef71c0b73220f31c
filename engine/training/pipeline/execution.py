"""Where a pipeline's plan is carried out: on the virtual clock alone, on real ranks, or on both."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.clock import Clock
from engine.core.config import Policy
from engine.core.events import AnyEvent
from engine.core.run import Live
from engine.distributed.merge import lane
from engine.training.plan.times import Costs

if TYPE_CHECKING:
    from engine.training.pipeline.config import PipelineConfig, Worked


@dataclass(frozen=True)
class Carried:
    """What real ranks did. `events`: of one step, in time order; `costs`: the passes and transfers
    as measured in it; `error`: of the gradients against one process's, relative, None where the
    model is too large to hold against it."""

    events: list[AnyEvent]
    costs: Costs
    error: float | None


class Execution(Policy):
    """Concrete ones lie one to a file in `executions`."""

    folder = "engine.training.pipeline.executions"

    @property
    @abstractmethod
    def is_real(self) -> bool:
        """Whether ranks do the plan."""

    @property
    @abstractmethod
    def is_modelled(self) -> bool:
        """Whether the virtual clock does, with what was measured where ranks did it too."""

    @abstractmethod
    def clock(self) -> Clock:
        """The clock that the log is under."""

    def lanes(self, ranks: int) -> list[str]:
        """The lanes of a plan of so many ranks, in order."""
        return [lane(rank) for rank in range(ranks)]

    @abstractmethod
    def carry_out(self, config: "PipelineConfig", made: "Worked", live: Live) -> Carried | None:
        """One step on real ranks; None where there are none. Raises BadInput, RankLost among it."""
