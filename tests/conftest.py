"""Options and fixtures every test may use."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow checks at their full size")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="minutes, not seconds: run with --full"))


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether to run at full size."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def root() -> Path:
    """The top of the checkout."""
    return ROOT
