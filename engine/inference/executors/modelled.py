"""Modelled execution: the time a described device would take, on a virtual clock."""

from typing import TYPE_CHECKING, Literal

from engine.core.config import knob
from engine.inference.executor import Built, Execution

if TYPE_CHECKING:
    from engine.inference.config import InferenceConfig


class Modelled(Execution):
    """Ask the roofline of a described device how long each step takes; compute no tensors."""

    kind: Literal["modelled"] = "modelled"
    device: str = knob("h100-sxm", "Device of datasets/hardware, or this-machine")

    def build(self, config: "InferenceConfig") -> Built:
        from engine.inference.executor_modelled import build

        return build(config, self)
