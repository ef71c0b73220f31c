"""Workload: the requests of a run, with when they arrive."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from engine.core.config import Policy
from engine.inference.requests.request import Request, Sampling


@dataclass(frozen=True, slots=True)
class Source:
    """What a workload may draw on: the model's vocabulary and its tokenizer, if it has one."""

    vocab: int
    context: int  # tokens a sequence may have
    sampling: Sampling  # what requests use unless the workload says otherwise
    encode: Callable[[str], list[int]] | None = None
    known: dict[int, Sampling] = field(default_factory=dict, compare=False)  # by tokens asked for

    def request(self, prompt: np.ndarray, answer: int, arrival: float, **fields: Any) -> Request:
        """A request whose answer has exactly `answer` tokens, whatever the model says."""
        asked = max(1, int(answer))
        if asked not in self.known:
            fixed = {"max_tokens": asked, "ignore_eos": True, "stop": (), "stop_tokens": ()}
            self.known[asked] = self.sampling.model_copy(update=fixed)
        return Request(prompt, self.known[asked], float(arrival), **fields)


class Stream(NamedTuple):
    """Requests in order of arrival, and how many there are."""

    total: int
    requests: Iterator[Request]


class Workload(Policy):
    """Where the requests of a run come from."""

    folder = "engine.inference.workloads"

    @property
    def speaks(self) -> bool:
        """Whether it needs the model's tokenizer."""
        return False

    @abstractmethod
    def requests(self, source: Source, seed: int) -> list[Request]:
        """All requests of the run by arrival time (seconds). Raises BadInput."""

    def stream(self, source: Source, seed: int) -> Stream:
        """`requests` in order of arrival. All of them are made at once, unless a workload knows
        better. Raises BadInput."""
        found = sorted(self.requests(source, seed), key=lambda request: request.arrival)
        return Stream(len(found), iter(found))
