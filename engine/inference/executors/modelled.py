"""Modelled execution: the time a described device would take, on a virtual clock."""

from types import MappingProxyType
from typing import ClassVar, Literal

from engine.core.config import knob
from engine.hardware.cost.constants import DEFAULT
from engine.hardware.device import Device
from engine.inference.executor import Built, Execution
from engine.inference.settings import Settings


class Modelled(Execution):
    """Ask a described device's cost model how long each step takes; compute no tensors.

    `curves` asks the operator cost model where it knows the device, else the bare roofline. The
    calibration fields say how far a real engine stays under the roofs of that device, and ask the
    roofline where one is given; by default they are the data sheet's own reached fractions.
    `workbench compare` measures them here.
    """

    real: ClassVar[bool] = False
    kind: Literal["modelled"] = "modelled"
    device: str = knob("h100-sxm", "Device of datasets/hardware, or this-machine")
    per_step: float = knob(
        50e-6, "Scheduling and sampling", low=0.0, high=1.0, unit="s/step", group="calibration"
    )
    per_sequence: float = knob(
        0.0, "Work on one sequence of a step", low=0.0, high=1.0, unit="s", group="calibration"
    )
    memory: float = knob(
        0.0, "Reached share of bandwidth; 0: the sheet's", low=0.0, high=1.25, group="calibration"
    )
    arithmetic: float = knob(
        0.0, "Reached share of the peak; 0: the sheet's", low=0.0, high=1.25, group="calibration"
    )

    curves: bool = knob(
        True, "Operators by curves fitted to measurements, where no share is given here"
    )
    constants: str = knob(
        DEFAULT, "Of those curves: own (the device's), a name in datasets/cost, a file"
    )
    profile: str = knob("", "Folder of an operator profile in place of curves; none: curves")

    def build(self, config: Settings) -> Built:
        from engine.inference.executors.costs.modelled_executor import build

        return build(config, self)

    def calibrated(self, device: Device) -> Device:
        """`device` with the reached shares given here in place of its own."""
        own = dict(device.efficiency)
        if self.memory:
            own["bandwidth"] = self.memory
        if self.arithmetic:
            own |= dict.fromkeys(device.peaks, self.arithmetic)
        return device.model_copy(update={"efficiency": MappingProxyType(own)})
