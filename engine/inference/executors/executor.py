"""Executor: runs the work that a step names, and says what came of it and how long it took.

`RealExecutor` (executors/tensors) runs tensors on the wall clock; `ModelledExecutor`
(executors/costs) asks the hardware model and leaves moving the virtual clock to the engine.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from engine.core.clock import Clock
from engine.core.executor import Executor as RealOrModelled
from engine.hardware import roofs_of
from engine.hardware.device import Device
from engine.inference.executors.settings import Settings
from engine.inference.requests.step import Result, Step


@dataclass(frozen=True, slots=True)
class Facts:
    """What the engine and the header need to know of the model and device under it."""

    model: str
    device: str
    vocab: int
    context: int  # tokens a sequence may have
    layers: int
    heads: int
    bytes_per_page: float
    eos: tuple[int, ...] = ()
    dtype: str = ""  # of weights and cache
    roofs: tuple[dict[str, Any], ...] = ()  # of the device, as the header carries them
    doubt: str = ""  # what to know before trusting them, "" for nothing
    cache: float = 0.0  # bytes of the last cache level, 0 where not known
    bytes_per_state: float = 0.0  # of a sequence's recurrent state; 0: the model keeps none
    both_ways: bool = False  # it can say what stands at masks, seeing what is before and behind
    mask: tuple[int, ...] = ()  # of a masked-diffusion model, which writes in no other way
    activations: str = ""  # those that are quantised as they come, and beside which weights
    guides: bool = True  # there is memory for the second rows of guided requests
    lanes: tuple[str, ...] = ()  # of a step's operations, where they run beside one another

    def header(self) -> dict[str, Any]:
        """What a run's header says of them."""
        names = ("layers", "heads", "model", "device", "bytes_per_page")
        found = {name: getattr(self, name) for name in names}
        told = {"activations": self.activations, "doubt": self.doubt}
        found |= {name: words for name, words in told.items() if words}
        return found | ({"lanes": list(self.lanes), "lanes_of": "step"} if self.lanes else {})

    def under(self, machine: Device | None) -> "Facts":
        """The same under the roofs of `machine`, as it was measured, where they run on it."""
        if machine is None or self.device != "cpu":
            return self
        doubt = f"roofs {machine.caution}" if machine.caution else ""
        cache = machine.caches.get("L3", 0.0)
        return replace(self, roofs=tuple(roofs_of(machine)), cache=cache, doubt=doubt)


class Executor(Protocol):
    """Does steps, one after another."""

    facts: Facts

    def execute(self, step: Step) -> Result:
        """Swaps out, copies, swaps in, then the forward pass, then one token for each sample."""
        ...

    def copy_seconds(self, pages_R: np.ndarray) -> float:
        """How long runs of `pages_R` pages take over the host link beside steps; 0 where steps
        make their own copies."""
        ...


class Tokens(Protocol):
    """Text to token numbers and back; engine.models.text.tokenizer.Tokenizer is one."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: list[int]) -> str: ...


@dataclass(slots=True)
class Built:
    """An executor with the clock it runs under and, where there is one, its tokenizer."""

    executor: Executor
    clock: Clock
    tokenizer: Tokens | None = None


class Execution(RealOrModelled):
    """The choice of executor."""

    folder = "engine.inference.executors"

    @abstractmethod
    def build(self, config: Settings) -> Built:
        """The executor this choice stands for, under its clock. Raises BadInput."""
