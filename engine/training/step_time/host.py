"""Host time of a layer's passes: kernels launched one by one, which the device's work hides or not.

A layer of experts has many: TransformerEngine's GroupedLinear launches each expert's product by
itself, and beside it what narrows its rows to 8 bits, with sizes that the host has to wait for. A
kernel for all experts (torch's grouped_mm) takes sizes from the device.
"""

from dataclasses import dataclass

from engine.training.step_time.constants import StepConstants
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.layer import Layer

ROUTED = 20  # kernels of a forward that route, permute, dispatch and combine (step_time.toml)
NARROWED = 2  # kernels that narrow a product's rows: its scale, its codes
BACKWARD = 2  # a backward's launches over a forward's


@dataclass(frozen=True, slots=True)
class Host:
    """Seconds of a layer's forward launches: of its experts, of all else. `waits`: whether a
    forward cannot launch its experts before the device has counted their rows."""

    rest: float
    experts: float
    waits: bool

    @classmethod
    def of(cls, run: TrainingRun, layer: Layer, step: StepConstants) -> "Host":
        if not layer.experts:
            return cls(step.host, 0.0, False)
        recipe, split = run.recipe, run.split
        each = len(layer.experts) * (1 + NARROWED * (recipe.dtype == "float8"))
        kernels = each * (layer.here if recipe.experts == "each" else 1)
        waits = recipe.experts == "each" or (split.expert > 1 and recipe.dispatch == "copies")
        return cls(step.host + ROUTED * step.kernel, kernels * step.kernel, waits)

    def forward(self, scale: float, busy: float, experts: float) -> float:
        """Seconds that the device waits in `busy` seconds of its own, `experts` of them of experts.

        What the host launched before it waited for their sizes is over then.
        """
        if not self.waits:
            return max(0.0, scale * (self.rest + self.experts) - busy)
        apart = busy - experts
        return max(0.0, scale * self.rest - apart) + max(0.0, scale * self.experts - experts)

    def backward(self, scale: float, busy: float) -> float:
        """The same of a backward, where all sizes are known."""
        return max(0.0, scale * BACKWARD * (self.rest + self.experts) - busy)
