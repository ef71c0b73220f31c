"""Work of a layer's passes in seconds: products, attention, rows, experts and their collectives.

Operators' times come from the operator cost model (`engine.hardware.cost`); what is left to say
here is which operators a pass has, and what a backward does again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.hardware.cost import attention, curves
from engine.hardware.cost.constants import Constants
from engine.hardware.device import Device
from engine.training.step_time.constants import StepConstants
from engine.training.step_time.described import Recipe, TrainingRun
from engine.training.step_time.layer import Layer, Product
from engine.training.step_time.wires import Wires

WORK = ("products", "attention", "rows", "experts", "collectives")
PRODUCTS, ATTENTION, ROWS, EXPERTS, COLLECTIVES = range(len(WORK))
FUSED = 1e-3  # cycles for a number that is narrowed
HALF = 2  # bytes of a 16-bit number
BACKWARD = 2.5  # flops of attention's backward over its forward (arXiv 2307.08691, section 4.1)
SOFTMAX = 9, 11  # bytes of a score, forward and backward, where scores lie in memory
LOSS = 16  # bytes of a logit in a fused cross entropy and its backward
GRADIENT = 10, 6  # bytes that a weight's gradient moves past its product, apart and fused


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
    """What times are asked of: a device with its constants, wires and the run's recipe."""

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

    @classmethod
    def of(cls, run: TrainingRun, found: Constants, step: StepConstants) -> "Bench":
        split, sheet = run.split, run.cluster.sheet()
        if found.narrow is not None:  # a training step's casts are fused, bound by memory alone
            fused = found.narrow.model_copy(update={"narrow": FUSED})
            found = found.model_copy(update={"narrow": fused})
        wires = Wires.of(run.cluster, found, step.network)
        steady = step.steadily(run.cluster.device, found.slug) * run.cluster.slowed()
        return cls(
            sheet, found, step, wires, run.recipe, split.tensor, split.context, split.expert,
            split.sequence_parallel and split.tensor > 1, steady,
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


def passes(bench: Bench, layer: Layer) -> Passes:
    """A layer's passes over one microbatch."""
    found = Passes(np.zeros(len(WORK)), np.zeros(len(WORK)), np.zeros(len(WORK)))
    _products(bench, layer, found)
    _experts(bench, layer, found)
    _attention(bench, layer, found)
    _rows(bench, layer, found)
    return replace(found, hidden=_collectives(bench, layer, found))


def outer(bench: Bench, vocabulary: int, hidden: int) -> tuple[Passes, Passes]:
    """Passes of the embedding and of the output head with its loss."""
    embed, head = (
        Passes(np.zeros(len(WORK)), np.zeros(len(WORK)), np.zeros(len(WORK))) for _ in range(2)
    )
    tokens = bench.tokens
    embed.forward[ROWS] = bench.moved(2 * HALF * tokens * hidden)
    embed.backward[ROWS] = bench.moved(2 * HALF * tokens * hidden)
    rows = vocabulary / bench.tensor
    shapes = [(tokens, rows, hidden), (tokens, hidden, rows), (rows, hidden, tokens)]
    dtype = "bfloat16" if bench.recipe.dtype == "float8" else bench.recipe.dtype
    each = bench.products(shapes, dtype)
    head.forward[PRODUCTS] = each[0]
    head.backward[PRODUCTS] = each[1:].sum() * bench.step.products
    loss = bench.moved(LOSS / 2 * tokens * rows)
    head.forward[ROWS], head.backward[ROWS] = loss, loss
    return embed, head


def _three(product: Product, rows: float) -> list[tuple[float, float, float]]:
    """Forward, gradient of the input, gradient of the weight, as (m, n, k)."""
    out, into = product.out, product.into
    return [(rows, out, into), (rows, into, out), (out, into, rows)]


def _products(bench: Bench, layer: Layer, found: Passes) -> None:
    shapes = [shape for each in layer.products for shape in _three(each, bench.tokens)]
    seconds = bench.products(shapes).reshape(-1, 3)
    found.forward[PRODUCTS] = seconds[:, 0].sum()
    found.backward[PRODUCTS] = seconds[:, 1:].sum() * bench.step.products
    found.again[PRODUCTS] = seconds[_again(bench.recipe, layer), 0].sum()


def _again(recipe: Recipe, layer: Layer) -> list[bool]:
    """Which products a backward does again."""
    if recipe.recompute == "half":
        return [each.again for each in layer.products]
    last = recipe.early_stop and not layer.experts
    every = [recipe.recompute == "full"] * len(layer.products)
    return [*every[:-1], every[-1] and not last]


def _experts(bench: Bench, layer: Layer, found: Passes) -> None:
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


def _attention(bench: Bench, layer: Layer, found: Passes) -> None:
    recipe = bench.recipe
    if recipe.attention == "unfused":
        forward, backward = _unfused(bench, layer)
    elif recipe.attention == "flash":
        forward, backward = _newest(bench, layer)
    else:
        forward, backward = _flash(bench, layer)
    found.forward[ATTENTION], found.backward[ATTENTION] = forward, backward
    found.again[ATTENTION] = forward if recipe.recompute != "none" else 0.0
    if recipe.recompute == "half":  # its output is kept
        found.again[ATTENTION] = 0.0


def _newest(bench: Bench, layer: Layer) -> tuple[float, float]:
    """By the operator cost model's attention of prompts."""
    recipe, dim = bench.recipe, (layer.query + layer.value) / 2
    dtype = "float16" if recipe.dtype == "float16" else "bfloat16"
    parts = attention.prefill(
        bench.device, bench.found, recipe.microbatch, recipe.sequence, layer.heads, layer.kv_heads,
        dim, dtype, keep=False,
    )  # fmt: skip
    launch = float(parts.roofs["launch"])
    work = (float(parts.seconds) - launch) * bench.seen(layer) * bench.steady / bench.context
    return launch + work, launch + work * BACKWARD * bench.step.backward


def _flash(bench: Bench, layer: Layer) -> tuple[float, float]:
    """FlashAttention-2, whose kernels multiply as an Ampere does on whatever device."""
    recipe, c, device = bench.recipe, bench.step, bench.device
    tokens, dim = recipe.sequence, (layer.query + layer.value) / 2
    best = c.flash_share * device.peak("bfloat16" if "bfloat16" in device.peaks else "float16")
    if device.units and device.clock:
        best = min(best, c.flash * device.units * device.clock)
    flops = 2 * recipe.microbatch * layer.heads * dim * tokens * tokens * bench.seen(layer)
    edges = (1 + c.flash_tail / tokens) * (1 + c.flash_head / dim)
    older = c.flash_1 if recipe.attention == "flash-1" else 1.0
    work = flops / best * edges * older * bench.steady / bench.context
    return work, work * BACKWARD * c.backward


def _unfused(bench: Bench, layer: Layer) -> tuple[float, float]:
    """Scores and weighted values as batched products, softmax and dropout over scores in memory."""
    recipe = bench.recipe
    rows = recipe.microbatch * layer.heads * recipe.sequence / bench.context
    tokens, query, value = recipe.sequence, layer.query, layer.value
    dtype = "float16" if recipe.dtype == "float16" else "bfloat16"
    each = bench.products([(rows, tokens, query), (rows, value, tokens)], dtype)
    products = float(each.sum())
    soft = [bench.moved(bench.step.scores * size * rows * tokens) for size in SOFTMAX]
    return products + soft[0], 2 * products + soft[1]


def _rows(bench: Bench, layer: Layer, found: Passes) -> None:
    """Norms, sums, dropout, activation, rotation, sorting of experts' rows: by their bytes."""
    along = bench.tensor if bench.sequence_parallel else 1
    drop = 2 * 1.5 if bench.recipe.dropout else 0.0
    inner = layer.widths
    apart = 1.0 if bench.recipe.compiled else bench.step.apart
    normed = layer.norms * (apart if layer.rms else 1.0)
    turned = 2 * apart * (layer.heads + layer.kv_heads) * layer.query * layer.rotary
    gate = 0 if bench.recipe.compiled else 2  # the gate's activation in a pass of its own
    sorted_rows = 4 * layer.hidden * layer.routed
    forward = (2 * normed + 6 + drop) * layer.hidden / along + turned + sorted_rows
    forward += (3 + gate if layer.gated else 2) * inner
    backward = (3 * normed + 4 + drop) * layer.hidden / along + turned + sorted_rows
    backward += (5 + gate if layer.gated else 3) * inner
    found.forward[ROWS] = bench.moved(HALF * bench.tokens * forward)
    found.backward[ROWS] = bench.moved(HALF * bench.tokens * backward)
    found.backward[ROWS] += (
        GRADIENT[bench.recipe.fused_gradients]
        * layer.weights
        / (bench.device.bandwidth * bench.step.rows)
    )
    if bench.recipe.recompute in ("full", "half"):
        found.again[ROWS] = found.forward[ROWS]


def _collectives(bench: Bench, layer: Layer, found: Passes) -> float:
    """Collectives of tensor, context and expert ranks; gives what is hidden of them."""
    recipe, wires, hidden = bench.recipe, bench.wires, 0.0
    size = HALF * bench.tokens * layer.hidden
    if bench.tensor > 1:
        split = ("all_gather", "reduce_scatter")
        names = split if bench.sequence_parallel else ("all_reduce",)
        once = 2 * sum(wires.seconds(name, bench.tensor, 1, size) for name in names)
        again = once if recipe.recompute == "full" else 0.0
        gradients = found.backward[PRODUCTS] / 2  # the weights', which wait for no collective
        for taken, each, room in (
            (found.forward, once, found.forward[PRODUCTS] * (recipe.tensor_overlap == "all")),
            (found.again, again, found.again[PRODUCTS] * (recipe.tensor_overlap == "all")),
            (found.backward, once, gradients * (recipe.tensor_overlap != "none")),
        ):
            shown = beside(bench.step.overlap, room, each) if room else each
            taken[COLLECTIVES] += shown
            hidden += each - shown
    if bench.context > 1:
        pair = 2 * HALF * bench.tokens * layer.kv_heads * layer.query
        for taken, times in ((found.forward, 1), (found.backward, 2)):
            ring = times * (bench.context - 1) * wires.message(bench.tensor, pair)
            shown = max(0.0, ring - taken[ATTENTION])
            taken[COLLECTIVES] += shown
            hidden += ring - shown
    if layer.experts and bench.expert > 1:
        ranks = bench.tensor if bench.sequence_parallel else 1  # that have tokens of their own
        hidden += _dispatch(bench, layer, size / ranks, found)
    return hidden


def _dispatch(bench: Bench, layer: Layer, size: float, found: Passes) -> float:
    """Tokens to their experts' ranks and back, `size` bytes on each rank; gives what is hidden."""
    recipe, wires, hidden = bench.recipe, bench.wires, 0.0
    once = recipe.dispatch == "once"
    share = wires.crossing(bench.expert, bench.tensor, layer.routed) if once else 1.0
    way = wires.seconds("all_to_all", bench.expert, bench.tensor, size * layer.routed, share)
    takes = [found.forward, found.backward]
    for taken in [*takes, found.again] if recipe.recompute == "full" else takes:
        shown = 2 * way
        if recipe.expert_overlap:
            work = float(taken.sum() - taken[COLLECTIVES])
            shown = beside(bench.step.overlap, work, shown)
        taken[COLLECTIVES] += shown
        hidden += 2 * way - shown
    return hidden
