"""How far a variant is from the truth: its largest error over the operator's cases.

In goes an operator, one of its variants and a dtype; out comes the error relative to the largest
magnitude of the plain reference in float64, which is what the operator's tolerances bound.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.kernels.operator import Arguments, Operator, Variant


@dataclass(frozen=True, slots=True)
class Parity:
    """`error`: the largest over `cases` shapes, at shape `worst`; NaN where nothing ran.

    `refused`: why cases were left out. Whole numbers (tokens, indices) count 1 where any differs.
    """

    dtype: str
    error: float
    tolerance: float
    cases: int
    worst: str
    refused: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every case ran within the tolerance, and one ran."""
        return self.cases > 0 and self.error <= self.tolerance


def parity(operator: Operator, variant: Variant, dtype: str, seed: int = 0) -> Parity:
    """Run the variant over every case it takes. CUDA variants are interpreted without a GPU."""
    refused: list[str] = []
    error, name, ran = 0.0, "", 0
    for case in operator.cases:
        given = dict(case.make(seed, getattr(torch, dtype)))
        here = placed(given, variant)
        obstacle = variant.obstacle(here, forced=True)
        if obstacle:
            refused.append(f"{case.name}: {obstacle}")
            continue
        found = outputs(variant.call(**here))
        truth = outputs(operator.reference(**wide(given)))
        this = max((distance(f, t) for f, t in zip(found, truth, strict=True)), default=0.0)
        ran += 1
        if this > error:
            error, name = this, case.name
    tolerance = operator.tolerances[dtype]
    return Parity(dtype, error if ran else math.nan, tolerance, ran, name, tuple(refused))


def distance(found: Tensor, truth: Tensor) -> float:
    """Largest difference, relative to the truth's largest magnitude (at least 0.001).

    Infinite where one of the two is NaN.
    """
    if not truth.numel():
        return 0.0
    if not truth.dtype.is_floating_point:
        return float(not torch.equal(found.cpu(), truth))
    ours = found.double().cpu()
    same = (ours == truth) | (ours.isnan() & truth.isnan())
    gap = float(torch.where(same, 0.0, (ours - truth).abs()).max())
    scale = float(truth[truth.isfinite()].abs().max()) if truth.isfinite().any() else 0.0
    return math.inf if math.isnan(gap) else gap / max(scale, 1e-3)


def placed(arguments: Arguments, variant: Variant) -> dict[str, Any]:
    """The arguments on the variant's device; on the processor where there is no GPU."""
    device = "cuda" if variant.device == "cuda" and torch.cuda.is_available() else "cpu"
    return {k: v.to(device) if torch.is_tensor(v) else v for k, v in arguments.items()}


def wide(arguments: Arguments) -> dict[str, Any]:
    """The same numbers in float64."""
    return {
        k: v.double() if torch.is_tensor(v) and v.is_floating_point() else v
        for k, v in arguments.items()
    }


def outputs(result: Any) -> tuple[Tensor, ...]:
    """The tensors a variant gives back."""
    return (result,) if torch.is_tensor(result) else tuple(t for t in result if torch.is_tensor(t))
