"""Cost of a model's forward passes on a described device: which of the cost models is asked.

The same costs whoever asks: a replica, a fleet or a prediction.
"""

from pathlib import Path
from typing import Protocol

from engine.core.errors import BadInput
from engine.hardware.cost.constants import constants
from engine.hardware.cost.profile import Profile
from engine.hardware.device import Device
from engine.hardware.link import link
from engine.inference.executors.costs.measured_step_cost import MeasuredCost
from engine.inference.executors.costs.operator_step_cost import CurvedCost, fits
from engine.inference.executors.costs.profiled_step_cost import ProfiledCost
from engine.inference.executors.costs.ranked_step_cost import (
    Cost,
    RankedCost,
    by_curves,
    by_link,
)
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.policies.parallelism import Parallelism
from engine.models.config import ModelConfig


class Choice(Protocol):
    """What `engine.inference.executors.modelled.Modelled` says: the device and the overheads."""

    device: str
    per_step: float
    per_sequence: float
    per_copy: float
    memory: float
    arithmetic: float
    curves: bool
    constants: str
    profile: str
    parallelism: Parallelism

    @property
    def ranks(self) -> Ranks:
        """How a replica is shared out."""
        ...

    def calibrated(self, device: Device) -> Device:
        """`device` with the shares of its roofs that are reached."""
        ...


def cost_of(
    model: ModelConfig, machine: Device, dtype: str, choice: Choice, ranks: Ranks | None = None
) -> Cost:
    """A profile's times where one is given, else the operator cost model where it knows the device
    and no share of a roof is given. Over several ranks, the choice's unless given, with their
    collectives. The same costs whoever asks: a replica, a fleet or a prediction. Raises BadInput.
    """
    ranks = ranks or choice.ranks
    shard = ranks.shard(model)
    inner: StepCost | MeasuredCost
    given = choice.memory or choice.arithmetic
    known = choice.curves and not given and fits(machine, dtype)
    found = constants(choice.constants, machine.slug) if known or choice.profile else None
    if choice.profile:
        inner = ProfiledCost(shard, machine, dtype, Profile(Path(choice.profile)))
    elif known and found is not None:
        inner = CurvedCost(shard, machine, dtype, found, ranks)
    else:
        inner = StepCost(shard, choice.calibrated(machine), dtype)
    if ranks.count == 1:
        return inner
    name = machine.scale_up or machine.host_link
    if not name:
        raise BadInput(f"device {machine.name}: its sheet names no link to its kind")
    by = link(name)
    known = known or bool(choice.profile and fits(machine, dtype))
    sums = by_curves(machine, by, found) if known and found is not None else by_link(by)
    return RankedCost(inner, model, ranks, sums, by)
