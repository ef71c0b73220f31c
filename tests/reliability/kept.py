"""Outcomes of a figure's tests, kept in a file as they come; what it tells of is not run again.

A pytest plugin: with --kept FILE whoever is ended in the middle goes on from there the next time.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

WORST = ("passed", "skipped", "failed", "error")  # the last that holds of its parts is a test's
LONGEST = 2000  # characters of what a failed test said that are kept


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kept", type=Path, help="what tests have come to, a line each")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--kept")
    if path is not None:
        config.pluginmanager.register(Kept(path), "kept")


class Kept:
    """One line a test that has run to its end."""

    def __init__(self, path: Path) -> None:
        self.path, self.before, self.worst, self.words = path, outcomes(path), 0, ""

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        done = [item for item in items if item.nodeid in self.before]
        items[:] = [item for item in items if item.nodeid not in self.before]
        config.hook.pytest_deselected(items=done)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        failed = report.failed and report.when != "call"
        self.worst = max(self.worst, WORST.index("error" if failed else report.outcome))
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.words = crash.message if crash else str(report.longrepr)
        if report.when == "teardown":
            with self.path.open("a") as file:
                # On a line of its own, whatever was cut off before it.
                said = [report.nodeid, WORST[self.worst], self.words[:LONGEST]]
                file.write("\n" + json.dumps(said))
            self.worst, self.words = 0, ""

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.before:
            session.exitstatus = pytest.ExitCode.OK


def outcomes(path: Path) -> dict[str, str]:
    """Test -> what it came to; a line cut off is no line."""
    return {name: outcome for name, outcome, _ in _lines(path)}


def failures(path: Path) -> dict[str, str]:
    """Test that failed -> what it said."""
    return {name: said for name, outcome, said in _lines(path) if outcome in WORST[2:]}


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
    try:
        text = path.read_text()
    except OSError:
        return
    for line in text.splitlines():
        try:
            name, outcome, *said = json.loads(line)
        except ValueError:
            continue
        yield name, outcome, said[0] if said else ""
