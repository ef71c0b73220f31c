"""One thread for small models: their work is shorter than a busy machine takes to wake a second."""

from collections.abc import Iterator

import numba
import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    threads, masked = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    numba.set_num_threads(masked)
