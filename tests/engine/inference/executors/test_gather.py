"""One token a row: the batch is what the general packing makes."""

import numpy as np
import pytest

from engine.inference.executors.tensors.gather import one_each, pack_rows
from engine.inference.requests.rows import Rows


def test_a_token_of_each_row_is_packed_as_any_number_is():
    rows, draw = Rows(9, 4), np.random.default_rng(0)
    rows.tokens[:9, :100] = draw.integers(0, 1000, (9, 100))
    rows.tables[:9] = draw.permutation(rows.tables[:9].size).reshape(9, -1)
    for which in (range(9), [3], [8, 0, 5], [2, 2]):
        rows_B = np.array(which)
        starts_B = draw.integers(0, 100, len(rows_B)).astype(np.int32)
        one = one_each(rows, rows_B, starts_B)
        any_ = pack_rows(rows, rows_B, starts_B, np.ones(len(rows_B), np.int32))
        assert one.logits_at_R.tolist() == list(range(len(rows_B)))
        for name in one.__slots__:
            had, made = getattr(any_, name), getattr(one, name)
            if isinstance(made, np.ndarray) and name != "logits_at_R":
                np.testing.assert_array_equal(made, had)
                assert made.dtype == np.int32 and made.flags.c_contiguous, name
    wide = rows.tables[:, ::2]  # what is no whole array is made one
    assert one_each(rows, wide[:3, 0] * 0 + 1, np.array([3, 4, 5])).positions_T.tolist() == [
        3,
        4,
        5,
    ]


def test_a_place_that_no_row_has_is_refused():
    rows = Rows(9, 4)
    with pytest.raises(IndexError):
        one_each(rows, np.array([3]), np.array([rows.tokens.shape[1] + 100], np.int32))
