"""Options and fixtures every test may use."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, internal, settings

from tests.outcomes import Outcomes
from tests.runs import Runs
from tests.spent import Spent
from tests.turn import TURNS, due
from workbench.cli.app import no_collection

ROOT = Path(__file__).resolve().parent.parent
# Grammars of international addresses that jsonschema compiles as it is imported, two seconds of
# each worker, for a format that nobody here asks for; without the package it leaves it out.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
NOBODY_ELSE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"  # that a browser can find
# The one without windows, of the same engine, takes half the processor time of the other.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
PATIENCE = 300.0  # seconds that a browser may take on a busy machine
EXAMPLES = 40  # of a property, where its test names no number; 100 with --full
WORKERS = 8  # at most: each imports torch, and tests of ranks start processes of their own


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow checks at their full size")
    parser.addoption("--soak", type=float, default=900.0, help="seconds of the full soak")


def pytest_configure(config: pytest.Config) -> None:
    """The same few examples every run, so that a change is judged by itself; many and new ones
    with `--full`.

    No example is held to a time: that would be a judgement of what else the machine is doing.
    """
    settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile(
        "same", settings.get_profile("full"), derandomize=True, max_examples=EXAMPLES
    )
    settings.load_profile("full" if config.getoption("--full") else "same")
    providers: Any = getattr(internal.conjecture, "providers", None)  # another version's may lack
    if not config.getoption("--full") and hasattr(providers, "_get_local_constants"):
        # Else it looks for numbers and words in all modules that a process has imported, half a
        # second of each and two of the first, and examples hang on which those are.
        providers._get_local_constants = lambda: providers._local_constants
    config.pluginmanager.register(Spent(config), "spent")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """The whole suite takes a worker a processor and one more; chosen tests run here, without.

    `-n NUMBER` is obeyed as it stands.
    """
    places = {(ROOT / name).resolve() for name in (".", *config.getini("testpaths"))}
    chosen = [(config.invocation_params.dir / name).resolve() for name in config.args]
    last_failed = getattr(config.option, "lf", False)  # pytest without its cache has no such option
    if config.option.keyword or last_failed or any(c not in places for c in chosen):
        return 0
    # A thread that waits leaves its processor to the other workers instead of spinning: a third of
    # the processor time of models' tests. Read when a worker loads OpenMP.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # One more, for what each waits: for pages, ranks, a kernel that another worker compiles.
    return min(WORKERS, processors + 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    """Without looking for garbage: a million objects that it imports stay."""
    with no_collection():
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that last begin first, so that no worker is left with one of them at the end.

    Each worker begins with as many in a row. The first one's are those in a browser and those on a
    Ray, which each worker that had some of them would start; the second one's the studies' claims
    and the notebooks about them, of which many share their runs: what another takes off it comes
    after them.
    """
    browsed, claims = ROOT / "tests" / "ui", ROOT / "tests" / "contracts" / "test_studies.py"
    on_ray = ROOT / "tests" / "engine" / "distributed" / "test_ray.py"
    books = browsed / "test_notebooks_run.py"
    of = {
        place: [item for item in items if item.path == place] for place in (claims, books, on_ray)
    }
    second = [*of[claims], *of[books]]
    first = [
        item for item in items if item.path.is_relative_to(browsed) and item.path != books
    ] + of[on_ray]
    taken = {*first, *second}
    rest = [item for item in items if item not in taken]
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    between = max(0, len(items) // workers - len(first)) if workers > 1 else 0
    items[:] = [*first, *rest[:between], *second, *rest[between:]]
    if config.getoption("--full"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="minutes, not seconds: run with --full"))
        turns = item.get_closest_marker("turns")
        if turns and not due(*turns.args):
            reason = f"one commit in {TURNS} asks it; --full asks each"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether to run at full size."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What checks of claims have come to, in all workers."""
    own = tmp_path_factory.getbasetemp()
    beside = os.environ.get("PYTEST_XDIST_WORKER")  # whose own folder lies in that of all
    return Outcomes((own.parent if beside else own) / "outcomes")


@pytest.fixture(scope="session")
def runs() -> Runs:
    """Logs of studies' runs, of this process."""
    return Runs()


@pytest.fixture
def root() -> Path:
    """The top of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[Any, Any]]:
    """A headless chromium, one a worker, and the loop of its driver: each start of both would cost
    two seconds of a processor. Skips the test, saying why, where there is no browser."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium-headless-shell")
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    api.expect.set_options(timeout=1000 * PATIENCE)
    with api.sync_playwright() as play:
        args = ["--no-sandbox", "--disable-gpu", f"--host-resolver-rules={NOBODY_ELSE}"]
        made = play.chromium.launch(executable_path=path, args=args)
        for name in ("new_page", "new_context"):
            setattr(made, name, patient(getattr(made, name)))
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield made, loop
        asyncio._set_running_loop(loop)
        made.close()


@pytest.fixture(scope="module")
def browser(chromium: tuple[Any, Any]) -> Iterator[Any]:
    """The browser, for one module: playwright keeps its loop the running one between its calls,
    and with it no test of another module could run a loop of its own."""
    made, loop = chromium
    asyncio._set_running_loop(loop)
    yield made
    asyncio._set_running_loop(None)


def patient(make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes pages or contexts that wait as long as a busy machine takes."""

    def made(*words: Any, **more: Any) -> Any:
        one = make(*words, **more)
        one.set_default_timeout(1000 * PATIENCE)
        return one

    return made
