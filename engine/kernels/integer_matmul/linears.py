"""Linear layers with quantised weights on the processor, activations as floats or in 8 bits.

Weights stay as they are packed, never unpacked to memory. Where activations are quantised as they
come, codes of 2, 4 and 8 bits are multiplied as integers; other formats take floats all the same,
and `told` says so.
Shape letters: T tokens, N outputs, K inputs.
"""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.integer_matmul.integers_cpu import integer_matmul
from engine.kernels.integer_matmul.tile import takes
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.pack import pack
from engine.kernels.quantised.panels_cpu import quantised_matmul
from engine.kernels.quantised.weight import Quantised

KINDS = ("auto", "int8")


class QuantisedLinear:
    """One layer's weights in codes of few bits, stacked by outputs."""

    __slots__ = ("bias_N", "integers", "weights")

    def __init__(self, weights: list[Quantised], bias_N: Tensor | None, integers: bool) -> None:
        self.weights = [pack(weight) for weight in weights]
        self.bias_N = None if bias_N is None else bias_N.float()
        self.integers = integers

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN in float32."""
        parts = [
            integer_matmul(x_TK, weight)
            if self.integers and takes(weight.format)
            else quantised_matmul(x_TK, weight)
            for weight in self.weights
        ]
        y_TN = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return y_TN if self.bias_N is None else y_TN + self.bias_N


class CodedLinears:
    """Makes the layers of a model, and counts the weights it made them of by format."""

    def __init__(self, integers: bool) -> None:
        self.integers = integers
        self.formats: Counter[str] = Counter()

    def __call__(self, weights: list[Quantised], bias_N: Tensor | None) -> Callable[..., Tensor]:
        """A projection to the weights' outputs side by side."""
        self.formats.update(weight.format.name for weight in weights)
        return QuantisedLinear(weights, bias_N, self.integers)


def told(formats: Counter[str]) -> str:
    """Which of a model's weights meet activations of 8 bits, by their formats. Raises BadInput
    where none does."""
    able = {name: count for name, count in formats.items() if takes(format_of(name))}
    if not able:
        held = ", ".join(sorted(formats)) or "plain numbers"
        raise BadInput(
            f"activations int8: this model's weights are {held}; give one with weights in int2, "
            "int4, int8 or ternary, or activations auto"
        )
    rest = {name: count for name, count in formats.items() if name not in able}
    said = "int8 with " + _listed(able)
    return said + (f"; float32 with {_listed(rest)}" if rest else "")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} weights of {name}" for name, count in sorted(counts.items()))
