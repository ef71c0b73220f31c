"""Work of a layer's passes in seconds: products, attention, rows, experts and their collectives.

Operators' times come from the operator cost model (`engine.hardware.cost`); what is left to say
here is which operators a pass has, and what a backward does again.
"""

from dataclasses import replace

import numpy as np

from engine.hardware.cost import attention
from engine.training.step_time import mixture
from engine.training.step_time.bench import (
    ATTENTION,
    COLLECTIVES,
    HALF,
    PRODUCTS,
    ROWS,
    WORK,
    Bench,
    Passes,
    beside,
)
from engine.training.step_time.described import Recipe
from engine.training.step_time.layer import Layer, Product

BACKWARD = 2.5  # flops of attention's backward over its forward (arXiv 2307.08691, section 4.1)
SOFTMAX = 9, 11  # bytes of a score, forward and backward, where scores lie in memory
LOSS = 16  # bytes of a logit in a fused cross entropy and its backward
GRADIENT = 10, 6  # bytes that a weight's gradient moves past its product, apart and fused


def passes(bench: Bench, layer: Layer) -> Passes:
    """A layer's passes over one microbatch."""
    found = Passes(np.zeros(len(WORK)), np.zeros(len(WORK)), np.zeros(len(WORK)))
    _products(bench, layer, found)
    mixture.experts(bench, layer, found)
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
    """Norms, sums, dropout, activation, rotation, sorting and biases of experts: by their bytes."""
    along = bench.tensor if bench.sequence_parallel else 1
    drop = 2 * 1.5 if bench.recipe.dropout else 0.0
    inner = layer.widths
    apart = 1.0 if bench.recipe.compiled else bench.step.apart
    normed = layer.norms * (apart if layer.rms else 1.0)
    turned = 2 * apart * (layer.heads + layer.kv_heads) * layer.query * layer.rotary
    gate = 0 if bench.recipe.compiled else 2  # the gate's activation in a pass of its own
    forward = (2 * normed + 6 + drop) * layer.hidden / along + turned
    forward += (3 + gate if layer.gated else 2) * inner
    backward = (3 * normed + 4 + drop) * layer.hidden / along + turned
    backward += (5 + gate if layer.gated else 3) * inner
    found.forward[ROWS] = bench.moved(HALF * bench.tokens * forward)
    found.backward[ROWS] = bench.moved(HALF * bench.tokens * backward)
    found.backward[ROWS] += (
        GRADIENT[bench.recipe.fused_gradients]
        * layer.weights
        / (bench.device.bandwidth * bench.step.rows)
    )
    mixture.rows(bench, layer, found)
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
        hidden += mixture.dispatch(bench, layer, size / ranks, found)
    return hidden
