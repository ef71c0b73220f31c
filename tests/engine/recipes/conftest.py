"""One thread for small models: their work is shorter than a busy machine takes to wake a second."""

from collections.abc import Iterator

import pytest

from tests.one_thread import one_thread


@pytest.fixture(autouse=True, scope="module")
def masked() -> Iterator[None]:
    with one_thread():
        yield
