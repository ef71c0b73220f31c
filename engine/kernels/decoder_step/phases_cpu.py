"""A dense decoder's whole step in one numba call: threads claim tasks, phase by phase.

Each layer is eight phases (norm, query-key-value, rotate and store, attend, out, norm, gate and up,
down), then the last norm and the output head. Phases end by counting tasks (see
`engine.kernels.claims`), so a step is one parallel region instead of a hundred.
The sums are those of the single kernels: a row has the same bits alone and in any batch.
"""

import numpy as np
from numba import carray, prange

from engine.kernels.claims import claim, finish, wait
from engine.kernels.compiled import address, body, call, entry, inner, kernel, pasted
from engine.kernels.decoder_step.arguments import Buffers, Inputs, Shape, Weights
from engine.kernels.decoder_step.products_cpu import FIELDS, PANELS, add, pointer
from engine.kernels.lanes import LANES
from engine.kernels.matmul.panels_cpu import task_panels
from engine.kernels.norm.rows_cpu import normalise
from engine.kernels.paged_attention.tasks_cpu import attend_task
from engine.kernels.rotary.halves_cpu import rotate_head
from engine.kernels.rows import gate, part
from engine.kernels.stamps import begin, clear, end, is_timed
from engine.kernels.stored import write

NORM, QKV, STORE, ATTEND, OUT, NORM_AGAIN, GATE, DOWN = range(8)
KINDS = 8  # phases of a layer
MATRICES = 7  # of a layer: query, key, value, out, gate, up, down
OUT_AT, GATE_AT, UP_AT, DOWN_AT = range(3, MATRICES)
CHUNK = 4  # tokens of a task that works on rows


def phases(layers: int) -> int:
    """How many phases a step has."""
    return KINDS * layers + 2


@inner
def _up(count, unit):
    return (count + unit - 1) // unit


@inner
def whole_lanes(count):
    return _up(count, LANES) * LANES


@pasted
def _clear(y, width, rows, first, last):
    for row in range(rows):
        here = part(y, row * width)
        for i in range(first, last):
            here[i] = np.float32(0)


@pasted
def _normalise(task, rows, shape, x, weight, weight_at, eps, y, all_rows, picked):
    """A chunk of rows of `x`: those `picked`, or all in order where `all_rows`."""
    width = whole_lanes(shape.hidden)
    for row in range(task * CHUNK, min(task * CHUNK + CHUNK, rows)):
        source = row if all_rows else np.int64(picked[row])
        normalise(x, source * width, shape.hidden, weight, weight_at, eps, y, row * width)


@pasted
def _qkv(task, tokens, layer, shape, weights, inputs, buffers):
    """A path's embedding is a bias of its tokens' keys and values."""
    wide = whole_lanes((shape.heads + 2 * shape.kv_heads) * shape.dim)
    unit = task_panels(tokens, wide // LANES, shape.threads)
    first, last = task * unit, min(task * unit + unit, wide // LANES)
    for row in range(tokens):
        place = layer * (shape.paths + 1) + np.int64(inputs.paths[row])
        bias, here = part(weights.biases, place * wide), part(buffers.qkv, row * wide)
        for i in range(first * LANES, last * LANES):
            here[i] = bias[i]
    before = np.int64(0)  # panels of the matrices so far
    for each in range(MATRICES * layer, MATRICES * layer + OUT_AT):
        panels = weights.matrices[each * FIELDS + PANELS]
        begin, end = max(first, before), min(last, before + panels)
        if begin < end:
            add(
                weights, each, buffers.normed, whole_lanes(shape.hidden), tokens, shape.hidden,
                begin - before, end - before, buffers.qkv, before * LANES, wide,
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
def _gate(task, tokens, layer, shape, weights, buffers):
    wide = whole_lanes(shape.width)
    unit = task_panels(tokens, wide // LANES, shape.threads)
    first, last = task * unit, min(task * unit + unit, wide // LANES)
    _clear(buffers.gate, wide, tokens, first * LANES, last * LANES)
    _clear(buffers.up, wide, tokens, first * LANES, last * LANES)
    hidden, zero = whole_lanes(shape.hidden), np.int64(0)
    add(
        weights, MATRICES * layer + GATE_AT, buffers.normed, hidden, tokens, shape.hidden, first,
        last, buffers.gate, zero, wide,
    )  # fmt: skip
    add(
        weights, MATRICES * layer + UP_AT, buffers.normed, hidden, tokens, shape.hidden, first,
        last, buffers.up, zero, wide,
    )  # fmt: skip
    for row in range(tokens):
        at = row * wide + first * LANES
        gate(buffers.gate, at, buffers.up, at, last - first)


@pasted
def _into_x(task, tokens, shape, weights, number, source, depth, stride, x):
    """x += source · W: the product that returns to the residual stream."""
    wide = whole_lanes(shape.hidden)
    unit = task_panels(tokens, wide // LANES, shape.threads)
    first, last = task * unit, min(task * unit + unit, wide // LANES)
    add(weights, number, source, stride, tokens, depth, first, last, x, np.int64(0), wide)


@pasted
def _task(kind, task, layer, tokens, shape, weights, inputs, buffers, keys, values, thread):
    hidden = shape.hidden
    if kind in (NORM, NORM_AGAIN):
        at = (2 * layer + (0 if kind == NORM else 1)) * hidden
        _normalise(
            task, tokens, shape, buffers.x, weights.norms, at, shape.eps, buffers.normed,
            True, inputs.logits_at,
        )  # fmt: skip
    elif kind == QKV:
        _qkv(task, tokens, layer, shape, weights, inputs, buffers)
    elif kind == STORE:
        _store(task, tokens, layer, shape, weights, inputs, buffers, keys, values)
    elif kind == ATTEND and inputs.attend != 0:
        arguments = task, layer, shape, weights.windows, inputs, buffers, keys, values, thread
        call(inputs.attend, arguments)
    elif kind == ATTEND:
        _attend(task, layer, shape, weights, inputs, buffers, keys, values, thread)
    elif kind == GATE:
        _gate(task, tokens, layer, shape, weights, buffers)
    else:
        out = kind == OUT
        mixed = shape.heads * shape.dim
        _into_x(
            task, tokens, shape, weights, MATRICES * layer + (OUT_AT if out else DOWN_AT),
            buffers.mixed if out else buffers.gate, mixed if out else shape.width,
            mixed if out else whole_lanes(shape.width), buffers.x,
        )  # fmt: skip


@pasted
def _tasks(kind, tokens, shape, inputs):
    """How many tasks a phase of a layer has."""
    if kind in (NORM, STORE, NORM_AGAIN):
        return _up(tokens, CHUNK)
    if kind == ATTEND:
        return inputs.first_tasks[-1]
    width = shape.hidden
    if kind == QKV:
        width = (shape.heads + 2 * shape.kv_heads) * shape.dim
    if kind == GATE:
        width = shape.width
    panels = _up(width, LANES)
    return _up(panels, task_panels(tokens, panels, shape.threads))


@pasted
def _logits(shape, weights, inputs, buffers, counters, timed):
    """The last norm and the output head, at the wanted rows only."""
    rows, phase = len(inputs.logits_at), KINDS * shape.layers
    tasks = _up(rows, CHUNK)
    task = claim(counters, phase)
    while task < tasks:
        _normalise(
            task, rows, shape, buffers.x, weights.norms, 2 * shape.layers * shape.hidden, shape.eps,
            buffers.normed, False, inputs.logits_at,
        )  # fmt: skip
        finish(counters, phase, 1)
        task = claim(counters, phase)
    wait(counters, phase, tasks)
    if timed:
        end(counters, phase)
    wide = whole_lanes(shape.vocab)
    unit = task_panels(rows, wide // LANES, shape.threads)
    tasks = _up(wide // LANES, unit)
    task = claim(counters, phase + 1)
    while task < tasks:
        first, last = task * unit, min(task * unit + unit, wide // LANES)
        _clear(buffers.logits, wide, rows, first * LANES, last * LANES)
        add(
            weights, MATRICES * shape.layers, buffers.normed, whole_lanes(shape.hidden), rows,
            shape.hidden, first, last, buffers.logits, np.int64(0), wide,
        )  # fmt: skip
        finish(counters, phase + 1, 1)
        task = claim(counters, phase + 1)
    wait(counters, phase + 1, tasks)
    if timed:
        end(counters, phase + 1)


@body
def run(shape, weights, inputs, buffers, counters, thread):
    """One thread's share of the step."""
    tokens, timed = len(inputs.positions), is_timed(counters)
    if timed:
        begin(counters)
    for layer in range(shape.layers):
        like, size = inputs.cache_like, inputs.cache_size
        keys = carray(pointer(inputs.caches[2 * layer], like), (size,))
        values = carray(pointer(inputs.caches[2 * layer + 1], like), (size,))
        for kind in range(KINDS):
            phase = KINDS * layer + kind
            tasks = _tasks(kind, tokens, shape, inputs)
            task = claim(counters, phase)
            while task < tasks:
                _task(
                    kind, task, layer, tokens, shape, weights, inputs, buffers, keys, values, thread
                )
                finish(counters, phase, 1)
                task = claim(counters, phase)
            wait(counters, phase, tasks)
            if timed:
                end(counters, phase)
    _logits(shape, weights, inputs, buffers, counters, timed)


@kernel
def spread(place, shape, weights, inputs, buffers, counters):
    """A step on all threads: `place` is the address of `run`."""
    for thread in prange(shape.threads):
        call(place, (shape, weights, inputs, buffers, counters, np.int64(thread)))


class DecoderStep:
    """The step compiled for arguments of the types given here, which later calls must repeat.

    Looking at types again would cost a decode more than its scheduler does.
    """

    def __init__(
        self, shape: Shape, weights: Weights, inputs: Inputs, buffers: Buffers, counters: np.ndarray
    ) -> None:
        self.place = address(run, shape, weights, inputs, buffers, counters, 0)
        self._enter = entry(spread, self.place, shape, weights, inputs, buffers, counters)

    def __call__(
        self, shape: Shape, weights: Weights, inputs: Inputs, buffers: Buffers, counters: np.ndarray
    ) -> None:
        """Run a batch through all layers: fills the cache slots and `buffers.logits`.

        `counters`: int64, `phases(layers) * claims.STRIDE` of them; set to zero here. Where
        `stamps.ask` asked for it, they hold when each phase ended (`stamps.seconds`).
        """
        clear(counters)
        self._enter(self.place, shape, weights, inputs, buffers, counters)
