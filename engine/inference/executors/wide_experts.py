"""Wide expert parallelism (CloudMatrix-Infer, arXiv 2506.12708): experts spread over all devices of
a supernode, tokens sent to them over its bus, and a step's tokens in two microbatches."""

from typing import Literal

from engine.core.config import knob
from engine.inference.executors.executor import Built
from engine.inference.executors.modelled import Modelled
from engine.inference.executors.settings import Settings


class WideExperts(Modelled):
    """A described instance of `dies` devices that share every layer's experts. This replica
    schedules the requests of `own` of them, dealt evenly; the others do alike."""

    kind: Literal["wide_experts"] = "wide_experts"  # type: ignore[assignment]
    device: str = knob("ascend-910c-die", "Device of datasets/hardware")
    dies: int = knob(
        320, "Devices that share a layer's experts", low=1, high=8192, log=True, group="experts"
    )
    own: int = knob(
        1, "Of those, devices whose requests this replica has", low=1, high=8192, log=True,
        group="experts",
    )  # fmt: skip
    redundant: int = knob(
        32, "Second copies of a layer's experts, for those that are asked most", low=0, high=8192,
        group="experts",
    )  # fmt: skip
    shared: int = knob(
        32, "Copies of a layer's shared expert; a device without one sends its tokens there", low=1,
        high=8192, group="experts",
    )  # fmt: skip
    skew: float = knob(
        1.0, "Tokens of the device that gets most, over the mean; 1: a perfect balance", low=1.0,
        high=64.0, group="experts", called="Load of the busiest expert device")  # fmt: skip
    int8: bool = knob(True, "Products and dispatched tokens in 8 bits, else in bfloat16")
    exchange: Literal["dispatch", "gather"] = knob(
        "dispatch", "Each token goes to its experts' devices, or every token to all", group="bus"
    )
    bus: str = knob("", "Link of each device, by its sheet; none: the device's", group="bus")
    bandwidth: float = knob(
        0.0, "Of that link in place of its sheet's; 0: the sheet's", low=0.0, high=1e15, unit="B/s",
        group="bus", called="Link bandwidth")  # fmt: skip
    dispatch_reach: float = knob(
        0.36, "Part of it that tokens reach on the way to experts of 8 devices (71 of 196 GB/s)",
        low=0.01, high=1.25, group="bus",
    )  # fmt: skip
    combine_reach: float = knob(
        0.67, "Part of it that they reach on the way back (131 of 196 GB/s)", low=0.01, high=1.25,
        group="bus",
    )  # fmt: skip
    fall: float = knob(
        0.95, "What is left of either with twice as many devices (54 and 103 GB/s among 256)",
        low=0.1, high=1.0, group="bus",
    )  # fmt: skip
    overlap: Literal["beside", "in_turn", "none"] = knob(
        "beside", "Whether two microbatches run beside one another where that is quicker, in turn, "
        "or all of a step is one", group="microbatches",
    )  # fmt: skip
    attention_units: float = knob(
        2 / 3, "Part of the cores on which answers' attention runs beside experts (16 of 24)",
        low=0.05, high=0.95, group="microbatches",
    )  # fmt: skip
    memory_units: float = knob(
        0.4, "Part of the cores with which memory's rate is reached", low=0.05, high=1.0,
        group="microbatches",
    )  # fmt: skip
    drafting_layers: int = knob(
        0, "Layers of the model that draft its next tokens, once a step", low=0, high=8
    )
    fault: Literal["none", "swapped"] = knob(
        "none", "What goes wrong on real ranks: rows of another rank's experts change places",
        group="faults",
    )  # fmt: skip

    def build(self, config: Settings) -> Built:
        """Raises BadInput where a device cannot hold its part."""
        from engine.inference.executors.costs.wide_expert_cost import build

        return build(config, self)
