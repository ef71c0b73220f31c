"""A dense decoder's whole step in one numba call: threads claim tasks, phase by phase.

Phases end by counting tasks (see `engine.kernels.claims`), so a step is one parallel region instead
of a hundred. A thread claims its first task of a phase before the phase before is over, asks for
the task's weights and waits for the others then; one that finds no task looks in the next phase.
"""

import numpy as np
from numba import carray, prange

from engine.kernels.claims import claim, finish, wait
from engine.kernels.compiled import address, body, call, entry, inner, kernel, pasted
from engine.kernels.decoder_step.arguments import Buffers, Inputs, Shape, Weights
from engine.kernels.decoder_step.phases_cpu import (
    CHUNK,
    KINDS,
    MATRICES,
    ask_for,
    clear_panels,
    do_task,
    normalise_rows,
    tasks_of,
    up,
    whole_lanes,
)
from engine.kernels.decoder_step.products_cpu import NOBODY, add, ask, pointer, unit_of
from engine.kernels.lanes import LANES
from engine.kernels.stamps import begin, clear, end, is_timed


def phases(layers: int) -> int:
    """How many phases a step has."""
    return KINDS * layers + 2


@inner
def _past(counters, phase, tasks, timed):
    """Wait until a phase is over."""
    wait(counters, phase, tasks)
    if timed and tasks:
        end(counters, phase)


@pasted
def _logits(shape, weights, inputs, buffers, counters, over, before, timed, thread):
    """The last norm and the output head, at the wanted rows only; `before` tasks of phase `over`
    come first."""
    rows, phase = len(inputs.logits_at), KINDS * shape.layers
    tasks = up(rows, CHUNK)
    task = claim(counters, phase)
    if task < tasks:
        _past(counters, over, before, timed)
    while task < tasks:
        normalise_rows(
            task, rows, shape, buffers.x, weights.norms, 2 * shape.layers * shape.hidden, shape.eps,
            buffers.normed, False, inputs.logits_at,
        )  # fmt: skip
        finish(counters, phase, 1)
        task = claim(counters, phase)
    if tasks:
        over, before = np.int64(phase), np.int64(tasks)
    wide, number = whole_lanes(shape.vocab), MATRICES * shape.layers
    unit = unit_of(weights.matrices, number, rows, wide // LANES, shape.threads)
    tasks = up(wide // LANES, unit) if rows else np.int64(0)  # of a prompt's middle nobody asks
    task = claim(counters, phase + 1)
    if task < tasks:
        ask(weights.matrices, number, task * unit, task * unit + unit)
    _past(counters, over, before, timed)
    while task < tasks:
        first, last = task * unit, min(task * unit + unit, wide // LANES)
        clear_panels(buffers.logits, wide, rows, first * LANES, last * LANES)
        add(
            weights, number, buffers.normed, whole_lanes(shape.hidden), rows, shape.hidden, first,
            last, buffers.logits, np.int64(0), wide, unit * shape.threads, buffers, thread,
            phase + 1,
        )  # fmt: skip
        finish(counters, phase + 1, 1)
        task = claim(counters, phase + 1)
    _past(counters, phase + 1, tasks, timed)


@body
def run(shape, weights, inputs, buffers, counters, thread):
    """One thread's share of the step."""
    tokens, timed = len(inputs.positions), is_timed(counters)
    if timed:
        begin(counters)
    if buffers.held_size:
        buffers.held[thread * buffers.held_size] = NOBODY
    over, before = np.int64(0), np.int64(0)  # the last phase that had tasks, and how many
    for layer in range(shape.layers):
        like, size = inputs.cache_like, inputs.cache_size
        keys = carray(pointer(inputs.caches[2 * layer], like), (size,))
        values = carray(pointer(inputs.caches[2 * layer + 1], like), (size,))
        for kind in range(KINDS):
            phase = KINDS * layer + kind
            tasks = tasks_of(kind, tokens, layer, shape, weights, inputs)
            task = claim(counters, phase)
            if task < tasks:
                ask_for(kind, task, layer, tokens, shape, weights)
                _past(counters, over, before, timed)
            while task < tasks:
                do_task(
                    kind, task, layer, tokens, shape, weights, inputs, buffers, keys, values, thread
                )
                finish(counters, phase, 1)
                task = claim(counters, phase)
            if tasks:
                over, before = np.int64(phase), np.int64(tasks)
    _logits(shape, weights, inputs, buffers, counters, over, before, timed, thread)


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
