"""torch_threads: how many threads torch computes with, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """`count` of them within, as many as before afterwards.

    One is best for small tensors: more would only wait for one another, and sums are the same on
    every machine.
    """
    had = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(had)
