"""Where other tests run beside these, a claim's kernels keep to one processor."""

import numba
import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread_beside_others(request):
    """Two processes with two busy threads each wait for each other at every barrier."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    threads, masked = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    numba.set_num_threads(masked)
