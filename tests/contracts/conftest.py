"""Where other tests run beside these, a claim's kernels keep to one processor."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.one_thread import one_thread


@pytest.fixture(autouse=True)
def masked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Two processes with two busy threads each wait for each other at every barrier."""
    beside = hasattr(request.config, "workerinput")
    with one_thread() if beside else nullcontext():
        yield
