"""Options and fixtures every test may use."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow checks at their full size")


def pytest_configure(config: pytest.Config) -> None:
    """The same examples every run, so that a change is judged by itself; new ones with `--full`."""
    settings.register_profile("same", derandomize=True)
    settings.register_profile("full")
    settings.load_profile("full" if config.getoption("--full") else "same")


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless chromium, one a module: playwright's loop must not outlive the tests that use it.

    Skips the test, saying why, where there is no browser.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()
