"""Attention on two levels of memory: right results, honest counts, nothing beyond M words."""

import math

import numpy as np
import pytest

from engine.core.config import kinds
from engine.core.errors import BadInput
from engine.kernels.experiments.attention_io import bounds
from engine.kernels.experiments.attention_io.memory import (
    KEY,
    OUTPUT,
    QUERY,
    SCORE,
    STATISTIC,
    VALUE,
    TwoLevelMemory,
    load,
    store,
)
from engine.kernels.experiments.attention_io.online import attend_online
from engine.kernels.experiments.attention_io.run import attention, sizes
from engine.kernels.experiments.attention_io.tiling import Tiling
from engine.kernels.experiments.attention_io.tilings.flash import Flash
from engine.kernels.experiments.attention_io.tilings.one_row import OneRow
from engine.kernels.experiments.attention_io.tilings.products import Products

TILINGS = [policy() for policy in kinds(Tiling).values()]


def inputs(rows, width, seed=0):
    return np.random.default_rng(seed).standard_normal((3, rows, width))


@pytest.mark.parametrize("tiling", TILINGS, ids=lambda t: t.kind)
@pytest.mark.parametrize(("rows", "width"), [(1, 4), (17, 5), (64, 8), (33, 16)])
def test_the_result_is_attention_at_every_size_of_fast_memory(tiling, rows, width):
    q, k, v = inputs(rows, width)
    for capacity in range(tiling.smallest(width), 4 * rows * width + 40, 37):
        counted = tiling.attend(q, k, v, capacity)
        assert np.abs(counted.o_NC - attention(q, k, v)).max() < 1e-12
        assert counted.held <= capacity
        assert counted.words >= bounds.any_tiling(rows, width, capacity)


def test_sums_hold_where_every_score_is_larger_than_the_one_before():
    k = np.arange(1.0, 33.0)[:, None] * np.ones((32, 4))
    q, v = np.ones((32, 4)), inputs(32, 4)[2]
    for tiling in TILINGS:
        assert np.allclose(tiling.attend(q, k, v, 64).o_NC, attention(q, k, v), atol=1e-12)
    wrong = Flash(rescales=False).attend(q, k, v, 64)
    assert np.abs(wrong.o_NC - attention(q, k, v)).max() > 0.1


def test_flash_moves_what_its_formula_says():
    rows, width, capacity = 48, 8, 12 * 19 + 1
    counted = Flash().attend(*inputs(rows, width), capacity)
    once, passes = rows * width, 4
    assert counted.moved[[QUERY, KEY, VALUE, OUTPUT]].tolist() == [
        [once, 0], [passes * once, 0], [passes * once, 0], [0, once],
    ]  # fmt: skip
    assert not counted.moved[[SCORE, STATISTIC]].any()


def test_keys_that_stay_are_loaded_once():
    rows, width = 48, 8
    room = 24 * 19 + 1 + 2 * width * 10
    counted = Flash().attend(*inputs(rows, width), room)
    assert counted.moved[KEY, 0] == 2 * rows * width - 10 * width


def test_everything_fits_then_only_the_compulsory_moves():
    rows, width = 16, 4
    counted = Flash().attend(*inputs(rows, width), 4 * rows * width + 3 * rows + 1)
    assert counted.words == bounds.compulsory(rows, width)


@pytest.mark.parametrize("rows", [40, 96])
def test_whole_rows_never_move_fewer_words_than_their_bound(rows):
    width = 4
    for capacity in range(width * width, rows * width, 29):
        words = Flash().attend(*inputs(rows, width), capacity).words
        assert words >= bounds.whole_rows(rows, width, capacity)


def test_products_spill_every_score_once():
    rows, width = 32, 8
    counted = Products().attend(*inputs(rows, width), 60)
    assert counted.moved[SCORE, 1] == rows * rows
    assert counted.moved[SCORE, 0] >= rows * rows


def test_one_row_gains_nothing_from_more_memory():
    q, k, v = inputs(32, 8)
    assert OneRow().attend(q, k, v, 24).words == OneRow().attend(q, k, v, 4000).words


def test_the_last_step_tells_the_whole_count():
    for tiling in (Flash(), OneRow()):
        counted = tiling.attend(*inputs(40, 8), 100)
        assert counted.steps[-1].sum() == counted.words
        assert (np.diff(counted.steps.sum(1)) > 0).all()


def test_nothing_reaches_beyond_fast_memory():
    memory = TwoLevelMemory(*inputs(16, 4), capacity=20)
    with pytest.raises(IndexError):
        load(memory.levels, QUERY, 0, 16, 8)
    with pytest.raises(IndexError):
        store(memory.levels, OUTPUT, 21, 0, 1)
    with pytest.raises(IndexError):  # a tiling laid out for more rows than fit
        attend_online(memory.levels, 16, 4, 8, 0, True, np.zeros((2, 6), np.int64))


def test_too_little_memory_is_said_in_one_line():
    with pytest.raises(BadInput, match=r"tiling flash: needs 20 words .* not 19"):
        Flash().attend(*inputs(16, 8), 19)


def test_a_counter_that_never_forgets_counts_each_word_once():
    counted = Flash().attend(*inputs(64, 8), 64, evicts=False)
    assert counted.words == bounds.compulsory(64, 8)


@pytest.mark.parametrize(("rows", "width"), [(256, 32), (1024, 64), (4096, 64)])
def test_bounds_are_ordered_and_fall_with_memory(rows, width):
    known = sizes(rows, width)
    for bound in (bounds.any_tiling, bounds.whole_rows):
        values = [bound(rows, width, m) for m in known if m >= width**2]
        assert values == sorted(values, reverse=True)
    for m in known:
        if m >= width**2:
            assert bounds.any_tiling(rows, width, m) <= bounds.whole_rows(rows, width, m)


def test_bounds_tend_to_what_their_derivation_says():
    rows, width = 10**6, 64
    m = 10**6
    assert math.isclose(
        bounds.any_tiling(rows, width, m), bounds.order(rows, width, m), rel_tol=0.1
    )
    assert math.isclose(
        bounds.whole_rows(rows, width, m), 4 * bounds.order(rows, width, m), rel_tol=0.01
    )


def test_sizes_reach_from_below_the_square_to_all_of_q():
    known = sizes(256, 32)
    assert {128, 256, 512, 1024, 8192} <= set(known)
    assert sizes(16, 64)[-1] >= 16 * 64


def test_fast_memory_that_lies_idle_costs_as_much_as_having_less():
    given = inputs(64, 8)
    idle, full = (tiling.attend(*given, 400) for tiling in (Flash(uses=0.5), Flash()))
    less = Flash().attend(*given, 200)
    assert idle.words == less.words > full.words
    assert np.allclose(idle.o_NC, full.o_NC)
