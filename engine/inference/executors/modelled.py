"""Modelled execution: the time a described device would take, on a virtual clock."""

from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import model_validator

from engine.core.config import Choice, knob
from engine.core.names import suggest
from engine.hardware.cost.constants import OWN
from engine.hardware.device import Device, devices
from engine.hardware.roofs import THIS_MACHINE
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.executor import Built, Execution
from engine.inference.executors.settings import Settings
from engine.inference.policies.parallelism import ByTensors, Parallelism


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
    per_copy: float = knob(
        0.0, "Issuing one copy between device and host, of a layer's keys or values", low=0.0,
        high=1.0, unit="s", group="calibration",
    )  # fmt: skip

    tensor_parallel: int = knob(
        1,
        "Ranks that share heads, feed-forwards and vocabulary",
        low=1,
        high=64,
        group="ranks",
        called="Tensor-parallel ranks",
    )
    pipeline_parallel: int = knob(1, "Ranks that share layers", low=1, high=64, group="ranks")
    data_parallel: int = knob(
        1, "Replicas alike beside this one, with which it shares experts", low=1, high=1024,
        group="ranks",
    )  # fmt: skip
    expert_parallel: bool = knob(
        False, "Whole experts on a rank, in place of parts of each", group="ranks"
    )
    parallelism: Choice[Parallelism] = knob(
        make=ByTensors, doc="How tensor ranks share a step", group="ranks", called="Parallelism"
    )
    curves: bool = knob(
        True, "Operators by curves fitted to measurements, where no share is given here"
    )
    constants: str = knob(
        OWN, "Of those curves: own (the device's), a name in datasets/cost, a file"
    )
    profile: str = knob("", "Folder of an operator profile in place of curves; none: curves")

    @model_validator(mode="after")
    def _described(self) -> "Modelled":
        known = [THIS_MACHINE, *devices()]
        if self.device not in known:
            real = "; what torch computes on is asked of executor=real"
            raise ValueError(
                f"device {self.device[:60]!r}: no data sheet; {suggest(self.device, known)}"
                + real * (self.device in ("cpu", "cuda"))
            )
        return self

    @property
    def ranks(self) -> Ranks:
        """How a replica is shared out among devices."""
        return Ranks(
            self.tensor_parallel, self.pipeline_parallel, self.data_parallel, self.expert_parallel
        )

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
