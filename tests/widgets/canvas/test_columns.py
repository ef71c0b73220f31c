"""Growing columns: appended, viewed, and copied without two copies seeing each other."""

import numpy as np

from widgets.canvas.columns import Columns


def test_rows_come_back_in_order_through_many_buffers():
    columns = Columns(lane="i4", time="f8")
    for i in range(1000):
        columns.append(i, i / 2)
    assert columns["lane"].tolist() == list(range(1000))
    assert columns["time"][-1] == 499.5 and len(columns) == 1000


def test_two_copies_that_grow_apart_do_not_see_each_other():
    first = Columns(x="i4")
    first.extend(np.arange(10))
    second = first.copy()
    first.append(100)
    second.append(200)
    second.append(201)
    first.append(101)
    assert first["x"].tolist() == [*range(10), 100, 101]
    assert second["x"].tolist() == [*range(10), 200, 201]


def test_a_view_taken_before_stays_as_it_was():
    columns = Columns(x="i4")
    columns.append(7)
    view = columns["x"]
    for i in range(600):
        columns.append(i)
    assert view.tolist() == [7]


def test_a_copy_costs_no_memory_until_it_grows():
    columns = Columns(x="f8")
    columns.extend(np.zeros(100_000))
    copies = [columns.copy() for _ in range(100)]
    assert all(np.shares_memory(c["x"], columns["x"]) for c in copies)
