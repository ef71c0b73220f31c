"""Decode loop: several decoder steps in one call, each row's token feeding its next step (numba).

A step is the decoder step's own and a token is picked as the sampler picks it, so that rows say
what they say step by step; what is saved is the Python between the steps.

Shape letters: D rows that go on, T tokens of the first step, W tokens of a row, V vocabulary.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import entry, inner, serial
from engine.kernels.decoder_step.arguments import Array, Buffers, Inputs, Shape, Weights
from engine.kernels.decoder_step.phases_cpu import whole_lanes
from engine.kernels.decoder_step.step_cpu import spread
from engine.kernels.rows import part
from engine.kernels.sample.rows_cpu import draw, likeliest
from engine.kernels.stored import read


class Going(NamedTuple):
    """Which rows go on from the first step's logits, and how far. All arrays are flat."""

    steps: int  # the most tokens of a row
    row: Array  # int64 [D] of `tokens`
    known: Array  # int32 [D] tokens a row has: where the next one goes
    wanted: Array  # int32 [D] tokens it is to get; one that has them writes to `scratch`
    tokens: Array  # int32 [rows, W]
    width: int
    embedding: Array  # float32 or bfloat16 bits [V, C]
    first: Array  # int32 [T] tokens of the first step
    scratch: int  # a slot that nobody reads
    temperature: Array  # float64 [D], 0 for the likeliest; with it
    top_k: Array  # int64 [D]
    top_p: Array  # float64 [D]
    min_p: Array  # float64 [D]
    seed: Array  # int64 [D]


@inner
def _clear(counters):
    """Every counter to zero. The loop is never timed, so nobody asked."""
    for i in range(len(counters)):
        counters[i] = 0


@inner
def _embed(going, token, shape, x, row):
    """A token's embedding as row `row` of x, in float32."""
    here, at = part(x, row * whole_lanes(shape.hidden)), np.int64(token) * shape.hidden
    for i in range(shape.hidden):
        here[i] = read(going.embedding, at + i)


@inner
def _pick(going, d, shape, logits, position):
    """The token that row `d` takes from its logits."""
    at = d * whole_lanes(shape.vocab)
    if going.temperature[d] > 0.0:
        return draw(
            logits, at, shape.vocab, going.temperature[d], going.top_k[d], going.top_p[d],
            going.min_p[d], going.seed[d], position,
        )  # fmt: skip
    return likeliest(logits, at, shape.vocab)[0]


@serial
def _loop(place, shape, weights, first, later, buffers, counters, going):
    for t in range(len(going.first)):
        _embed(going, going.first[t], shape, buffers.x, t)
    _clear(counters)
    spread(place, shape, weights, first, buffers, counters)
    for step in range(going.steps):
        for d in range(len(going.row)):
            position = np.int64(going.known[d]) + step
            goes_on = step < going.wanted[d]
            if goes_on:
                token = _pick(going, d, shape, buffers.logits, position)
                going.tokens[going.row[d] * going.width + position] = token
                _embed(going, token, shape, buffers.x, d)
            later.positions[d], later.context[d] = 0, 1
            later.slots[d] = going.scratch
            if step + 1 < going.wanted[d]:
                page = later.table[d * later.table_width + position // shape.page_size]
                later.positions[d], later.context[d] = position, position + 1
                later.slots[d] = page * shape.page_size + position % shape.page_size
        if step + 1 < going.steps:
            _clear(counters)
            spread(place, shape, weights, later, buffers, counters)


class DecodeLoop:
    """The loop compiled for arguments of the types given here, which later calls must repeat.

    `place`: address of the decoder step's `run`.
    """

    def __init__(
        self, place: int, shape: Shape, weights: Weights, first: Inputs, later: Inputs,
        buffers: Buffers, counters: np.ndarray, going: Going,
    ) -> None:  # fmt: skip
        self._place = place
        arguments = place, shape, weights, first, later, buffers, counters, going
        self._enter = entry(_loop, *arguments)

    def __call__(
        self, shape: Shape, weights: Weights, first: Inputs, later: Inputs, buffers: Buffers,
        counters: np.ndarray, going: Going,
    ) -> None:  # fmt: skip
        """Run `first`, of whose logits row d is `going`'s row d, then a step for each token more.

        `later` has one token for each of `going`'s rows; its positions, slots and contexts are
        written here.
        """
        self._enter(self._place, shape, weights, first, later, buffers, counters, going)
