import numba
import numpy as np
import pytest
from numba import prange

from engine.kernels.claims import STRIDE, claim, finish, wait
from engine.kernels.compiled import kernel

PHASES, TASKS = 50, 7


@kernel
def _count(counters, done, seen, threads):
    """Each phase adds one to each of its tasks, after looking at what the phase before left."""
    for _ in prange(threads):
        for phase in range(PHASES):
            task = claim(counters, phase)
            while task < TASKS:
                if phase > 0:
                    seen[phase, task] = done[phase - 1].sum()
                done[phase, task] += 1
                finish(counters, phase, 1)
                task = claim(counters, phase)
            wait(counters, phase, TASKS)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_task_is_done_once_and_phases_follow_each_other(threads):
    # Five shares on fewer threads: a share that runs after the others finds nothing left to do.
    counters = np.zeros(PHASES * STRIDE, np.int64)
    done, seen = np.zeros((2, PHASES, TASKS), np.int64)
    _count(counters, done, seen, threads)
    assert (done == 1).all()
    assert (seen[1:] == TASKS).all()


def test_kernels_run_on_the_threads_that_are_there():
    assert numba.config.THREADING_LAYER == "omp"
