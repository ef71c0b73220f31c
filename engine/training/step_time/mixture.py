"""Work of a layer of experts: grouped products, rows that are sorted and biased, messages.

What Megatron-Core's layers launch is counted from its `moe` folder at 0.16 (token_dispatcher.py,
experts.py): sorting for an all-to-all and again by expert, and a bias of experts in passes of its
own in float32.
"""

import numpy as np

from engine.hardware.cost import attention, curves
from engine.training.step_time.bench import (
    COLLECTIVES,
    EXPERTS,
    HALF,
    ROWS,
    Bench,
    Passes,
)
from engine.training.step_time.layer import Layer

SORTED = {"copies": 8, "once": 4}  # a row read or written: for its rank, there by expert, and back
BIASED = 28, 40  # bytes of a number, forward and backward: product, sum, joining, narrowing


def experts(bench: Bench, layer: Layer, found: Passes) -> None:
    """Grouped products: each expert's rows in whole tiles, every expert's weights read once."""
    if not layer.experts:
        return
    tokens = bench.tokens * layer.routed  # each rank gets as many as it sends
    rows = np.ceil(tokens / layer.here / attention.QUERIES) * attention.QUERIES * layer.here
    shapes = [
        shape
        for each in layer.experts
        for shape in ((rows, each.out, each.into), (rows, each.into, each.out))
    ]
    seconds = bench.products(shapes).reshape(-1, 2)
    weights = np.array([each.out * each.into for each in layer.experts]) * layer.here
    size = curves.BYTES[bench.recipe.dtype]
    least = size * weights / (bench.device.bandwidth * bench.found.matmul.bandwidth)
    seconds = np.maximum(seconds, least[:, None]) * bench.step.grouped
    forward, back = seconds.sum(0)
    found.forward[EXPERTS], found.backward[EXPERTS] = forward, 2 * back * bench.step.products
    if bench.recipe.recompute == "full":
        found.again[EXPERTS] = forward


def rows(bench: Bench, layer: Layer, found: Passes) -> None:
    """Add what experts' rows are moved beside their products: sorted, and biased where each
    expert's rows are."""
    shared = 1 if bench.apart == bench.tensor else bench.tensor  # whose rows are each its own
    numbers = bench.tokens * layer.routed * layer.hidden / shared
    each = bench.moved(HALF * SORTED[bench.recipe.dispatch] * numbers)
    found.forward[ROWS] += each
    found.backward[ROWS] += each
    if layer.biased and bench.recipe.experts == "each":
        for taken, size in zip((found.forward, found.backward), BIASED, strict=True):
            taken[ROWS] += bench.moved(size * numbers)


def dispatch(bench: Bench, layer: Layer, size: float, found: Passes) -> float:
    """Tokens to their experts' ranks and back, `size` bytes on each rank; gives what is hidden."""
    recipe, wires, hidden = bench.recipe, bench.wires, 0.0
    once = recipe.dispatch == "once"
    ranks = bench.expert, bench.apart
    share = wires.crossing(*ranks, layer.routed, layer.groups) if once else 1.0
    way = wires.seconds("all_to_all", *ranks, size * layer.routed, share)
    takes = [found.forward, found.backward]
    for taken in [*takes, found.again] if recipe.recompute == "full" else takes:
        shown = 2 * way
        if recipe.expert_overlap:
            work = float(taken.sum() - taken[COLLECTIVES])
            shown -= min(bench.step.hidden * shown, work)
        taken[COLLECTIVES] += shown
        hidden += 2 * way - shown
    return hidden
