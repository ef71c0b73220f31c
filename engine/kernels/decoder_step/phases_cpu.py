"""Tasks of a dense decoder's step (numba), phase by phase.

Each layer is eight phases (norm, query-key-value, rotate and store, attend, out, norm, gate and up,
down), then come the last norm and the output head (`step_cpu`).
The sums are those of the single kernels: a row has the same bits alone and in any batch.
"""

import numpy as np

from engine.kernels.compiled import call, inner, pasted
from engine.kernels.decoder_step.products_cpu import FIELDS, PANELS, add, ask, unit_of
from engine.kernels.lanes import LANES
from engine.kernels.norm.rows_cpu import normalise
from engine.kernels.paged_attention.tasks_cpu import attend_task
from engine.kernels.rotary.halves_cpu import rotate_head
from engine.kernels.rows import gate, part
from engine.kernels.stored import write

NORM, QKV, STORE, ATTEND, OUT, NORM_AGAIN, GATE, DOWN = range(8)
KINDS = 8  # phases of a layer
MATRICES = 7  # of a layer: query, key, value, out, gate, up, down
OUT_AT, GATE_AT, _, DOWN_AT = range(3, MATRICES)  # up follows gate
CHUNK = 4  # tokens of a task that works on rows


@inner
def up(count, unit):
    return (count + unit - 1) // unit


@inner
def whole_lanes(count):
    return up(count, LANES) * LANES


@pasted
def clear_panels(y, width, rows, first, last):
    for row in range(rows):
        here = part(y, row * width)
        for i in range(first, last):
            here[i] = np.float32(0)


@pasted
def normalise_rows(task, rows, shape, x, weight, weight_at, eps, y, all_rows, picked):
    """A chunk of rows of `x`: those `picked`, or all in order where `all_rows`."""
    width = whole_lanes(shape.hidden)
    for row in range(task * CHUNK, min(task * CHUNK + CHUNK, rows)):
        source = row if all_rows else np.int64(picked[row])
        normalise(x, source * width, shape.hidden, weight, weight_at, eps, y, row * width)


@pasted
def _qkv(task, tokens, layer, shape, weights, inputs, buffers, thread):
    """A path's embedding is a bias of its tokens' keys and values."""
    wide = whole_lanes((shape.heads + 2 * shape.kv_heads) * shape.dim)
    first_of = MATRICES * layer
    unit = unit_of(weights.matrices, first_of, tokens, wide // LANES, shape.threads)
    first, last = task * unit, min(task * unit + unit, wide // LANES)
    for row in range(tokens):
        place = layer * (shape.paths + 1) + np.int64(inputs.paths[row])
        bias, here = part(weights.biases, place * wide), part(buffers.qkv, row * wide)
        for i in range(first * LANES, last * LANES):
            here[i] = bias[i]
    before = np.int64(0)  # panels of the matrices so far
    for each in range(first_of, first_of + OUT_AT):
        panels = weights.matrices[each * FIELDS + PANELS]
        begin, end = max(first, before), min(last, before + panels)
        if begin < end:
            add(
                weights, each, buffers.normed, whole_lanes(shape.hidden), tokens, shape.hidden,
                begin - before, end - before, buffers.qkv, before * LANES, wide,
                unit * shape.threads, buffers, thread, KINDS * layer + QKV,
            )  # fmt: skip
        before += panels


@pasted
def _store(task, tokens, layer, shape, weights, inputs, buffers, keys, values):
    """Norm and rotate a chunk's queries and keys; keys and values go to their slots."""
    H, G, D = shape.heads, shape.kv_heads, shape.dim
    wide = whole_lanes((H + 2 * G) * D)
    qkv = buffers.qkv
    for token in range(task * CHUNK, min(task * CHUNK + CHUNK, tokens)):
        turn_at = np.int64(inputs.positions[token]) * D
        slot = np.int64(inputs.slots[token]) * G * D
        for head in range(H + G):
            at = token * wide + head * D
            if shape.qk_norm:
                norm_at = (2 * layer + (0 if head < H else 1)) * D
                normalise(qkv, at, D, weights.head_norms, norm_at, shape.eps, qkv, at)
            rotate_head(qkv, at, D // 2, inputs.turn, turn_at)
        key_at = token * wide + H * D
        for i in range(G * D):
            write(keys, slot + i, qkv[key_at + i])
            write(values, slot + i, qkv[key_at + G * D + i])


@pasted
def _attend(task, layer, shape, weights, inputs, buffers, keys, values, thread):
    H, G, D = shape.heads, shape.kv_heads, shape.dim
    attend_task(
        task, inputs.first_tasks, inputs.task_heads, buffers.qkv, whole_lanes((H + 2 * G) * D), H,
        keys, values, G, D, D,
        shape.page_size, inputs.table, inputs.table_width, inputs.start, inputs.context,
        shape.scale, weights.windows[layer], shape.softcap, weights.sinks, buffers.mixed, H * D,
        buffers.work, thread * buffers.work_size,
    )  # fmt: skip


@pasted
def _gate(task, tokens, layer, shape, weights, buffers, thread):
    wide = whole_lanes(shape.width)
    number = MATRICES * layer + GATE_AT
    unit = unit_of(weights.matrices, number, tokens, wide // LANES, shape.threads)
    first, last = task * unit, min(task * unit + unit, wide // LANES)
    clear_panels(buffers.gate, wide, tokens, first * LANES, last * LANES)
    clear_panels(buffers.up, wide, tokens, first * LANES, last * LANES)
    hidden, zero = whole_lanes(shape.hidden), np.int64(0)
    add(
        weights, number, buffers.normed, hidden, tokens, shape.hidden, first, last, buffers.gate,
        zero, wide, unit * shape.threads, buffers, thread, KINDS * layer + GATE,
    )  # fmt: skip
    add(
        weights, number + 1, buffers.normed, hidden, tokens, shape.hidden, first, last, buffers.up,
        zero, wide, unit * shape.threads, buffers, thread, KINDS * layer + GATE,
    )  # fmt: skip
    for row in range(tokens):
        at = row * wide + first * LANES
        gate(buffers.gate, at, buffers.up, at, last - first)


@pasted
def _into_x(
    task, tokens, shape, weights, number, source, depth, stride, x, buffers, thread, phase
):  # fmt: skip
    """x += source · W: the product that returns to the residual stream."""
    wide = whole_lanes(shape.hidden)
    unit = unit_of(weights.matrices, number, tokens, wide // LANES, shape.threads)
    first, last = task * unit, min(task * unit + unit, wide // LANES)
    add(
        weights, number, source, stride, tokens, depth, first, last, x, np.int64(0), wide,
        unit * shape.threads, buffers, thread, phase,
    )  # fmt: skip


@pasted
def do_task(kind, task, layer, tokens, shape, weights, inputs, buffers, keys, values, thread):
    hidden = shape.hidden
    if kind in (NORM, NORM_AGAIN):
        at = (2 * layer + (0 if kind == NORM else 1)) * hidden
        normalise_rows(
            task, tokens, shape, buffers.x, weights.norms, at, shape.eps, buffers.normed,
            True, inputs.logits_at,
        )  # fmt: skip
    elif kind == QKV:
        _qkv(task, tokens, layer, shape, weights, inputs, buffers, thread)
    elif kind == STORE:
        _store(task, tokens, layer, shape, weights, inputs, buffers, keys, values)
    elif kind == ATTEND and inputs.attend != 0:
        arguments = task, layer, shape, weights.windows, inputs, buffers, keys, values, thread
        call(inputs.attend, arguments)
    elif kind == ATTEND:
        _attend(task, layer, shape, weights, inputs, buffers, keys, values, thread)
    elif kind == GATE:
        _gate(task, tokens, layer, shape, weights, buffers, thread)
    else:
        out = kind == OUT
        mixed = shape.heads * shape.dim
        _into_x(
            task, tokens, shape, weights, MATRICES * layer + (OUT_AT if out else DOWN_AT),
            buffers.mixed if out else buffers.gate, mixed if out else shape.width,
            mixed if out else whole_lanes(shape.width), buffers.x, buffers, thread,
            KINDS * layer + kind,
        )  # fmt: skip


@inner
def matrix_of(kind, layer, shape):
    """The first matrix of a phase with a product, and the outputs that its tasks share."""
    if kind == QKV:
        return MATRICES * layer, (shape.heads + 2 * shape.kv_heads) * shape.dim
    if kind == GATE:
        return MATRICES * layer + GATE_AT, shape.width
    return MATRICES * layer + (OUT_AT if kind == OUT else DOWN_AT), shape.hidden


@pasted
def tasks_of(kind, tokens, layer, shape, weights, inputs):
    """How many tasks a phase of a layer has."""
    if kind in (NORM, STORE, NORM_AGAIN):
        return up(tokens, CHUNK)
    if kind == ATTEND:
        return inputs.first_tasks[-1]
    number, width = matrix_of(kind, layer, shape)
    panels = up(width, LANES)
    return up(panels, unit_of(weights.matrices, number, tokens, panels, shape.threads))


@pasted
def ask_for(kind, task, layer, tokens, shape, weights):
    """Ask for the weights of a task that cannot begin yet."""
    if kind in (QKV, OUT, GATE, DOWN):
        number, width = matrix_of(kind, layer, shape)
        unit = unit_of(weights.matrices, number, tokens, up(width, LANES), shape.threads)
        ask(weights.matrices, number, task * unit, task * unit + unit)
        if kind == GATE:
            ask(weights.matrices, number + 1, task * unit, task * unit + unit)
