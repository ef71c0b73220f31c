"""One thread for what kernels do: small work is over before a busy machine has woken a second."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba
import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """torch's and numba's threads of the calling thread are masked to one."""
    threads, masked = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        numba.set_num_threads(masked)
