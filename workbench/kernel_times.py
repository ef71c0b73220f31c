"""How fast a kernel is against the roofs measured on this machine.

In goes an operator, a variant and a measured device; out comes a row for each of the sizes the
operator is timed at: seconds, the shortest time the roofs allow, and the part of the limit reached.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.hardware import Device, bound
from engine.kernels.operator import Case, Operator, Variant
from engine.kernels.parity import placed

SHORTEST, MOST = 0.3, 200  # seconds to go on measuring for, and the most calls


def times(
    operator: Operator,
    variant: Variant,
    machine: Device,
    dtype: str = "float32",
    sizes: Sequence[Case] = (),
) -> Iterator[dict[str, Any]]:
    """A row for each size (the operator's own, if none are given) that the variant takes here."""
    import torch

    for size in sizes or operator.sizes:
        given = placed(size.make(0, getattr(torch, dtype)), variant)
        if variant.obstacle(given):
            continue
        with torch.inference_mode():
            taken = seconds(lambda given=given: variant.call(**given), waits(variant))
        work = (variant.work or operator.work)(given)
        row = {"size": size.name, "dtype": dtype, "seconds": taken, "flops": work.flops}
        moved = work.bytes["memory"]
        row |= {"bytes": moved, "limit_seconds": None, "fraction_of_limit": None, "roof": ""}
        if variant.device == "cpu":
            unit = dtype if dtype in machine.peaks else "float32"
            limit = bound(machine.at_best(), work.flops, moved, unit)
            row |= {"limit_seconds": limit.seconds, "roof": limit.roof}
            row["fraction_of_limit"] = limit.seconds / taken
        yield row


def waits(variant: Variant) -> Callable[[], None]:
    """What a call of the variant must be followed by to be over."""
    import torch

    return torch.cuda.synchronize if variant.device == "cuda" else lambda: None


def seconds(call: Callable[[], Any], wait: Callable[[], None] = lambda: None) -> float:
    """Median time of a call after one that warms up."""
    call()
    wait()
    taken: list[float] = []
    begun = time.perf_counter()
    while len(taken) < 3 or (time.perf_counter() - begun < SHORTEST and len(taken) < MOST):
        start = time.perf_counter()
        call()
        wait()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
