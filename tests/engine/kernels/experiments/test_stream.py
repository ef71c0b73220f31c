"""STREAM through one interface: exact numbers on every backend, and plain words for misuse."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.kernels.experiments.stream.backend import ALIGNED, backends, empty, pick
from engine.kernels.experiments.stream.native import C_LOOP, C_PAST, native, native_past
from engine.kernels.experiments.stream.operations import OPERATIONS
from engine.kernels.experiments.stream.run import compare
from engine.kernels.experiments.stream.vectors import Vector

HERE = [b for b in [*backends().values(), C_LOOP, C_PAST] if not b.missing()]


def vector(backend, values):
    place = empty(len(values))
    place[:] = values
    return Vector(backend, place)


@pytest.mark.parametrize("backend", HERE, ids=lambda b: b.name)
def test_every_backend_gives_numpys_numbers(backend):
    assert compare(backend, 3.0, 0) == 0


@pytest.mark.parametrize("backend", HERE, ids=lambda b: b.name)
@pytest.mark.parametrize("length", [1, 7, 8, 513, 20011])
def test_every_number_is_written_and_none_beside(backend, length):
    x, y = np.arange(1.0, length + 1), np.full(length, 2.0)
    place = empty(length + 16)
    place[:] = np.nan
    out = Vector(backend, place[:length])
    a, b = vector(backend, x), vector(backend, y)
    for what, truth in ((a, x), (3.0 * a, 3 * x), (a + b, x + y), (b + 3.0 * a, y + 3 * x)):
        out.assign(what)
        assert np.array_equal(out.numbers(), truth)
        assert np.isnan(place[length:]).all()


def test_scaled_terms_stand_on_either_side():
    backend = pick("numpy")
    a, b = vector(backend, [1.0, 2.0]), vector(backend, [10.0, 20.0])
    a.assign(2.0 * a * 3.0 + b)
    assert a.numbers().tolist() == [16.0, 32.0]
    with pytest.raises(BadInput, match="one has to be a plain vector"):
        a.assign(2.0 * a + b * 3.0)


def test_lengths_and_backends_have_to_match():
    a = vector(pick("numpy"), [1.0, 2.0])
    with pytest.raises(BadInput, match="lengths 3 and 2"):
        a.assign(vector(pick("numpy"), [1.0, 2.0, 3.0]))
    with pytest.raises(BadInput, match="backends torch and numpy"):
        a.assign(vector(pick("torch"), [1.0, 2.0]))


def test_a_backend_is_picked_by_rank_and_by_name():
    assert pick().rank == max(b.rank for b in HERE if not b.interpreted)
    assert pick("torch").name == "torch"
    with pytest.raises(BadInput, match="no such backend; one of: "):
        pick("cuda")


def test_vectors_begin_on_a_cache_line():
    assert all(empty(n).ctypes.data % ALIGNED == 0 and len(empty(n)) == n for n in (1, 9, 1000))


def test_bytes_are_counted_as_stream_does_and_as_caches_do():
    assert [op.counted for op in OPERATIONS] == [16, 16, 24, 24]
    assert [op.moved(streams=False) for op in OPERATIONS] == [24, 24, 32, 32]
    assert [op.moved(streams=True) for op in OPERATIONS] == [16, 16, 24, 24]


def test_without_a_compiler_the_plain_loop_is_the_native_one():
    assert native(lambda: "no C compiler").name == "plain-loop"
    assert native(lambda: "").name == "native C"


def test_the_native_loop_past_the_caches_streams_and_has_a_stand_in():
    assert native_past(lambda: "no C compiler").name == "streaming-stores"
    assert native_past(lambda: "") is C_PAST and C_PAST.streams


def test_a_comparison_that_stops_early_finds_a_wrong_number_in_each_operation():
    assert compare(pick("numpy"), 3.0, 0, short=True) == len(OPERATIONS)
