"""Where other tests run beside these, a claim's kernels keep to one processor."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.one_thread import one_thread


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Claims of a study follow its run, whose log is kept no longer than memory allows."""
    places = [at for at, item in enumerate(items) if item.path.name == "test_studies.py"]
    ordered = sorted((items[at] for at in places), key=_slug)
    for at, item in zip(places, ordered, strict=True):
        items[at] = item


def _slug(item: pytest.Item) -> str:
    """The study that a test is of; "" where it is of all."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return params["claimed"][0] if "claimed" in params else params.get("chosen", "")


@pytest.fixture(autouse=True)
def masked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Two processes with two busy threads each wait for each other at every barrier."""
    beside = hasattr(request.config, "workerinput")
    with one_thread() if beside else nullcontext():
        yield
