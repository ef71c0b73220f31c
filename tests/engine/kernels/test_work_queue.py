"""The work queue: nobody idles while items wait, runs stay whole, a faster pace ends all sooner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.work_queue import first_free

RUNS = st.lists(st.lists(st.floats(0.1, 5.0), max_size=4), max_size=12)


@given(runs=RUNS, workers=st.integers(1, 5))
def test_items_are_done_once_in_runs_by_whoever_is_free(runs, workers):
    done = first_free(runs, workers, begin=1.0)
    costs = [cost for run in runs for cost in run]
    assert [each.stop - each.start for each in done] == pytest.approx(costs)
    at = 0
    for run in runs:
        mine, at = done[at : at + len(run)], at + len(run)
        assert len({each.worker for each in mine}) <= 1
        for before, after in zip(mine, mine[1:], strict=False):
            assert after.start == before.stop
    last = [
        max([each.stop for each in done if each.worker == w], default=1.0) for w in range(workers)
    ]
    heads = [sum(map(len, runs[:k])) for k, run in enumerate(runs) if run]
    # Whoever ran out of work did so no earlier than the last run was taken.
    assert min(last) >= max((done[head].start for head in heads), default=1.0) - 1e-9


def test_the_first_free_worker_takes_the_next():
    done = first_free([[3.0], [1.0], [1.0], [2.0]], 2)
    assert [each.worker for each in done] == [0, 1, 1, 1]
    assert [each.start for each in done] == [0.0, 0.0, 1.0, 2.0]


def test_the_last_ones_run_faster_where_the_pace_says_so():
    done = first_free([[4.0], [2.0]], 2, pace=lambda busy: 2 / busy)
    assert [each.stop for each in done] == [3.0, 2.0]  # alone from 2.0 on, at twice the pace
