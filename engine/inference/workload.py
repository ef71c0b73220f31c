"""What a workload is: the requests of a run, with when they arrive."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from engine.core.config import Policy
from engine.inference.request import Request, Sampling


@dataclass(frozen=True, slots=True)
class Source:
    """What a workload may draw on: the model's vocabulary and, where there is one, its tokenizer."""

    vocab: int
    context: int  # tokens a sequence may have
    sampling: Sampling  # what requests use unless the workload says otherwise
    encode: Callable[[str], list[int]] | None = None


class Workload(Policy):
    """Where the requests of a run come from."""

    folder = "engine.inference.workloads"

    @abstractmethod
    def requests(self, source: Source, seed: int) -> list[Request]:
        """All requests of the run by arrival time (seconds). Raises BadInput."""
