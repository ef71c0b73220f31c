"""Times that a training step's passes are put together from: of products, and of bytes moved.

Operators' times come from the operator cost model (`engine.hardware.cost`); a run's device, recipe
and wires are held here once for all of its layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.hardware.cost import curves
from engine.hardware.cost.constants import Constants
from engine.hardware.device import Device
from engine.training.step_time.constants import StepConstants
from engine.training.step_time.described import Recipe, TrainingRun
from engine.training.step_time.layer import Layer
from engine.training.step_time.wires import Wires

WORK = ("products", "attention", "rows", "experts", "collectives")
PRODUCTS, ATTENTION, ROWS, EXPERTS, COLLECTIVES = range(len(WORK))
FUSED = 1e-3  # cycles for a number that is narrowed
HALF = 2  # bytes of a 16-bit number


@dataclass(frozen=True, slots=True)
class Passes:
    """Seconds by kind of work (`WORK`) of one layer and microbatch on one device.

    `again`: what the backward computes a second time. `hidden`: collectives beside products.
    """

    forward: np.ndarray
    again: np.ndarray
    backward: np.ndarray
    hidden: float = 0.0


@dataclass(frozen=True, slots=True)
class Bench:
    """What times are asked of: a device with its constants, wires and the run's recipe.

    `apart`: how far expert ranks stand from one another. They divide a stage's devices, tensor
    ranks too where more of them are asked for than there are replicas, as Megatron-Core's do.
    """

    device: Device
    found: Constants
    step: StepConstants
    wires: Wires
    recipe: Recipe
    tensor: int
    context: int
    expert: int
    sequence_parallel: bool
    steady: float
    apart: int = 1

    @classmethod
    def of(cls, run: TrainingRun, found: Constants, step: StepConstants) -> "Bench":
        split, sheet = run.split, run.cluster.sheet()
        if found.narrow is not None:  # a training step's casts are fused, bound by memory alone
            fused = found.narrow.model_copy(update={"narrow": FUSED})
            found = found.model_copy(update={"narrow": fused})
        wires = Wires.of(run.cluster, found, step.network)
        steady = step.steadily(run.cluster.device, found.slug) * run.cluster.slowed()
        owners = run.replicas * split.context
        apart = split.tensor if split.expert <= owners else 1
        return cls(
            sheet, found, step, wires, run.recipe, split.tensor, split.context, split.expert,
            split.sequence_parallel and split.tensor > 1, steady, apart,
        )  # fmt: skip

    @property
    def tokens(self) -> float:
        """Of a microbatch, on this device."""
        return self.recipe.microbatch * self.recipe.sequence / self.context

    def products(self, shapes: Sequence[tuple[float, float, float]], dtype: str = "") -> np.ndarray:
        """Seconds of each product (m, n, k)."""
        if not shapes:
            return np.zeros(0)
        m, n, k = np.array(shapes, np.float64).T
        name = dtype or self.recipe.dtype
        parts = curves.matmul(self.device, self.found, m, n, k, name)
        return np.asarray(parts.seconds) * self.steady

    def seen(self, layer: Layer) -> float:
        """Share of a causal mask's pairs that a layer's window leaves."""
        tokens = self.recipe.sequence
        return layer.pairs(tokens) / (tokens * (tokens + 1) / 2)

    def moved(self, size: float) -> float:
        """Seconds of row operators that move `size` bytes, fused or not."""
        more = 1.0 if self.recipe.compiled else self.step.eager
        return size * more / (self.device.bandwidth * self.step.rows)


def beside(lost: float, busy: float, traffic: float) -> float:
    """How much longer `busy` seconds of work take with traffic beside them."""
    return max(0.0, traffic - busy) + lost * min(busy, traffic)
