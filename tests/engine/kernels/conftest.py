"""One thread, but where threads are the subject: waking a second on a busy machine takes longer."""

from collections.abc import Iterator

import numba
import pytest


@pytest.fixture(autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    masked = numba.get_num_threads()
    if request.module.__name__.rsplit(".", 1)[-1] != "test_claims":
        numba.set_num_threads(1)
    yield
    numba.set_num_threads(masked)
