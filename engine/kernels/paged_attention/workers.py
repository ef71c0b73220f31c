"""Workers of a decode step: threads of this machine, or modelled processors of a device.

Shape letters as in `plan`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.executor import Executor
from engine.kernels.operator import Arguments
from engine.kernels.paged_attention.plan import Plan


@dataclass(frozen=True)
class Shape:
    """What a step computes: query heads, key/value heads, head size, numbers' dtype and bytes."""

    heads: int
    kv_heads: int
    dim: int
    dtype: str
    number: int

    @property
    def share(self) -> int:
        """Query heads of a key/value head."""
        return self.heads // self.kv_heads

    @property
    def key_bytes(self) -> int:
        """One key and its value, of one head."""
        return 2 * self.dim * self.number

    @property
    def key_flops(self) -> int:
        """Scores and weighted values of one key for the queries on its head."""
        return 4 * self.dim * self.share

    @property
    def part_bytes(self) -> int:
        """One partial result: outputs and log-sum-exps in float32."""
        return self.share * (self.dim + 1) * 4


@dataclass(frozen=True)
class Times:
    """Seconds (begin, end) of every item and merge since the step began, and who did it."""

    item_I2: np.ndarray
    worker_I: np.ndarray
    merge_M2: np.ndarray
    merger_M: np.ndarray

    @property
    def makespan(self) -> float:
        """From the first item's begin to the end of the last item or merge."""
        if not len(self.item_I2):
            return 0.0
        last = max(self.item_I2[:, 1].max(), self.merge_M2[:, 1].max(initial=0.0))
        return float(last - self.item_I2[:, 0].min())


class Workers(Executor):
    """Who computes a plan's items."""

    folder = "engine.kernels.paged_attention.executors"

    @abstractmethod
    def number(self) -> int:
        """How many there are."""

    @abstractmethod
    def arguments(self, contexts: list[int], shape: Shape, seed: int) -> Arguments | None:
        """The tensors they compute on, or None where nothing is computed."""

    @abstractmethod
    def work(self, made: Plan, shape: Shape, given: Arguments | None, rescale: bool) -> Times:
        """One step: when every item and merge ran."""

    @abstractmethod
    def error(self, made: Plan, given: Arguments | None, rescale: bool) -> float | None:
        """Largest error against the plain reference in float64, relative to its largest number."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the log's header says of them: grade, device, roofs."""


def lane(worker: int) -> str:
    """The lane of a worker."""
    return f"worker {worker}"
