"""Data movement: kernels compute what they say, caches miss as they must, classes follow counts."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Run
from engine.kernels.experiments.data_movement.bottleneck import Spent, limited_by
from engine.kernels.experiments.data_movement.caches import (
    ACCESSES,
    DRAM_WRITE,
    L1_MISS,
    L2_MISS,
    L3_MISS,
    PREFETCHED,
    Hierarchy,
    misses,
)
from engine.kernels.experiments.data_movement.classes import Profile, classify
from engine.kernels.experiments.data_movement.config import MovementConfig
from engine.kernels.experiments.data_movement.facts import facts
from engine.kernels.experiments.data_movement.held_out import HELD_OUT
from engine.kernels.experiments.data_movement.kernels import KERNELS, PASSES, TASKS, TERMS
from engine.kernels.experiments.data_movement.locality import spatial, temporal
from engine.kernels.experiments.data_movement.run import LABEL, run

BY_NAME = {kernel.name: kernel for kernel in KERNELS}
SCALE = 32
SMALL = Hierarchy(l1_kib=1.0, l2_kib=4.0, l3_kib=16.0)  # 16, 64 and 256 lines


def stream(*lines, store=0):
    return np.array([2 * 64 * line + store for line in lines], np.int64)


def found(entries, shape=SMALL, ends=None):
    return misses(entries, np.array(ends or [len(entries)]), shape)


def test_a_line_misses_once_and_then_hits():
    counted = found(stream(5, 5, 5))
    assert [counted.total(w) for w in (L1_MISS, L2_MISS, L3_MISS, ACCESSES)] == [1, 1, 1, 3]


def test_each_level_catches_what_the_one_before_cannot_hold():
    for lines, expected in ((16, (16, 16, 16)), (64, (192, 64, 64)), (256, (768, 768, 256))):
        counted = found(np.tile(stream(*range(lines)), 3))
        assert tuple(counted.total(w) for w in (L1_MISS, L2_MISS, L3_MISS)) == expected
    assert found(np.tile(stream(*range(512)), 3)).lfmr == 1.0


def test_the_least_recently_used_of_a_set_goes():
    sets = 2  # of L1: 16 lines in 8 ways
    ring = [sets * way for way in range(8)]
    kept = found(stream(*ring, ring[0], 16, ring[0]))  # 16 takes the place of ring[1]
    assert kept.total(L1_MISS) == 9
    assert found(stream(*ring, ring[0], 16, ring[1])).total(L1_MISS) == 10


def test_written_lines_return_to_memory_once_they_fall_out_of_all_caches():
    assert found(stream(*range(2048), store=1)).total(DRAM_WRITE) >= 2048 - 256 - 64 - 16
    assert found(stream(*range(2048))).total(DRAM_WRITE) == 0
    assert found(np.tile(stream(*range(8), store=1), 9)).total(DRAM_WRITE) == 0


def test_cores_have_their_own_first_levels_and_share_the_last():
    one = stream(*range(200))
    both = np.concatenate([np.tile(one, 4), np.tile(one + 2 * 64 * 200, 4)])
    alone = found(np.tile(one, 4))
    shared = found(both, ends=[800, 1600])
    assert alone.lfmr == 0.25  # 200 lines lie in L3
    assert shared.lfmr == 1.0  # 400 do not


def test_a_prefetcher_follows_streams_and_only_those():
    ahead = SMALL.model_copy(update={"prefetch": 2})
    line = stream(*range(1000))
    assert found(line, ahead).total(L3_MISS) <= 4
    assert found(line, ahead).total(PREFETCHED) >= 996
    rows = stream(*np.random.default_rng(0).permutation(4000))
    assert found(rows, ahead).total(L3_MISS) > 0.95 * found(rows).total(L3_MISS)


def test_caches_shrunk_to_nothing_are_refused():
    with pytest.raises(BadInput, match="fewer than 8 ways"):
        misses(stream(1), np.array([1]), Hierarchy(l1_kib=1.0), scale=32)


def test_locality_of_known_streams():
    order = np.random.default_rng(1).permutation(1 << 20)[:5000]
    assert spatial(np.arange(5000)) == 1.0
    assert spatial(8 * np.arange(5000)) == 1 / 8
    assert spatial(order) < 0.01
    assert temporal(np.zeros(5000, np.int64)) == pytest.approx(1.0, abs=1e-3)
    assert temporal(np.arange(5000)) == 0.0
    pairs = np.repeat(np.arange(2500), 2)
    assert temporal(pairs) == pytest.approx(0.5)
    assert temporal(np.array([], np.int64)) == 0.0


@pytest.mark.parametrize("cores", [1, 4, 64])
def test_the_kernels_compute_what_they_say(cores):
    draw = np.random.default_rng
    x = BY_NAME["triad"].record(cores, SCALE, 3).result
    before = draw(3).random(x.shape)
    assert np.array_equal(x[0], before[1] + 3.0 * before[2])

    hits = BY_NAME["linked-records"].record(cores, SCALE, 3).result
    count = 4 * 8192 * 1024 // SCALE // 64
    more = draw(3)
    more.permutation(count)
    words = more.integers(0, 256, (count, 16)).astype(np.int32)
    assert hits[:, 0].sum() == (words[:, 1:] == 7).sum()

    u = BY_NAME["smoothing"].record(cores, SCALE, 3).result
    truth = draw(3).random(u.shape)
    for _ in range(PASSES):
        for i in range(1, truth.shape[1] - 1):
            truth[:, i] = truth[:, i - 1 : i + 2].sum(1) / 3
    assert np.allclose(u, truth, atol=1e-12)

    y = BY_NAME["sine-series"].record(cores, SCALE, 3).result
    truth = draw(3).random(y.shape)
    for _ in range(PASSES):
        truth = np.mean([np.sin(truth + k / 8) for k in range(TERMS)], axis=0)
    assert np.allclose(y, truth, atol=1e-9)


def test_reaction_and_quantiser_compute_what_they_say():
    u = BY_NAME["reaction"].record(16, SCALE, 3).result
    truth = np.random.default_rng(3).random(u.shape)
    for _ in range(PASSES):
        for i in range(1, truth.shape[1] - 1):
            left, here, right = truth[:, i - 1], truth[:, i].copy(), truth[:, i + 1]
            bend = left - 2 * here + right
            truth[:, i] = here + 0.2 * bend + 0.1 * here * (1 - here)
    assert np.allclose(u, truth, atol=1e-12)

    levels = BY_NAME["quantiser"].record(1, SCALE, 3).result[0]
    x = np.random.default_rng(3).standard_normal(3 * 8192 * 1024 // SCALE // 8)
    x = x.astype(np.float32).astype(float)
    low, high = -0.1, 0.1
    for _ in range(PASSES):
        near = x < (low + high) / 2
        low, high = x[near].mean(), x[~near].mean()
    assert np.allclose(levels, (low, high))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_cores_share_the_work_and_no_written_line(kernel):
    one, many = (kernel.record(cores, SCALE, 0) for cores in (1, TASKS))
    assert one.operations == many.operations
    assert one.instructions == many.instructions
    assert len(one.stream) == len(many.stream) == one.ends[-1] == many.ends[-1]
    parts = np.split(many.stream, many.ends[:-1])
    written = [set((p[p & 1 == 1] >> 7).tolist()) for p in parts]
    assert sum(map(len, written)) <= len(set.union(*written)) + TASKS


CASES = {
    "1a": Profile(1.0, 0.0, 0.7, (50.0, 50.0), (1.0, 1.0)),
    "1b": Profile(0.1, 0.0, 2.0, (5.0, 5.0), (1.0, 1.0)),
    "1c": Profile(1.0, 0.1, 2.0, (5.0, 1.0), (0.9, 0.1)),
    "2a": Profile(1.0, 0.8, 2.0, (1.0, 8.0), (0.1, 0.9)),
    "2b": Profile(1.0, 0.8, 2.0, (1.0, 1.0), (0.2, 0.2)),
    "2c": Profile(1.0, 0.8, 16.0, (1.0, 1.0), (0.2, 0.2)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_tree_gives_each_class(name):
    assert classify(CASES[name]) == name
    assert name in facts()["classes"]


def test_counts_that_fit_no_branch_have_no_class():
    assert classify(replace(CASES["1a"], lfmr=(0.1, 0.1))) == "none"
    assert classify(replace(CASES["2b"], mpki=(50.0, 50.0))) == "none"
    assert classify(replace(CASES["2b"], lfmr=(0.9, 0.9))) == "none"


@pytest.mark.parametrize("held", HELD_OUT, ids=lambda kernel: kernel.name)
def test_kernels_held_out_give_each_core_its_part_of_the_same_work(held):
    one, many = (held.record(cores, SCALE, 0) for cores in (1, TASKS))
    assert np.array_equal(one.stream, many.stream)
    assert (one.operations, one.instructions) == (many.operations, many.instructions)
    assert len(many.ends) == TASKS and many.ends[-1] == len(many.stream)
    assert (np.diff(many.ends, prepend=0) > 0).all()
    assert not held.belongs  # nobody said what it is


LONG, SHORT = Spent(1.0, 0.1, 2.0, 0.5), Spent(1.0, 0.1, 0.1, 0.5)
LABELS = {
    "1a": (replace(LONG, bandwidth=9.0), replace(LONG, bandwidth=9.0)),
    "1b": (LONG, LONG),
    "1c": (LONG, replace(SHORT, bandwidth=0.1)),
    "2a": (SHORT, replace(LONG, bandwidth=1.5)),
    "2b": (replace(SHORT, caches=2.0), replace(SHORT, caches=2.0)),
    "2c": (SHORT, SHORT),
}


@pytest.mark.parametrize("name", LABELS)
def test_the_times_of_few_and_of_many_cores_give_each_label(name):
    assert limited_by(LABELS[name]) == name


def test_the_label_agrees_where_memory_alone_sets_the_time():
    log = Run.execute(run, MovementConfig(scale=32)).log
    labels = {m.lane: m.text[:2] for m in log.of(Mark) if m.name == LABEL}
    assert labels["triad"] == "1a"
    assert labels["linked-records"] == "1b"
    assert labels["reaction"] == "2a"
    assert labels["sine-series"] == "2c"
