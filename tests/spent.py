"""CPU seconds of each test: what it and the processes it waited for took of processors.

A pytest plugin. Waiting for others costs nothing, so figures hold on a busy machine too; what
numba compiles, once a machine, is told apart and left out. The last run's figures stay in pytest's
cache, where `python -m tests.price` finds them. At the end it says what the whole run took, and how
busy the machine's processors were meanwhile.
"""

import os
import sys
import time
from pathlib import Path
from time import process_time, thread_time  # as they are, whatever a test puts in their place
from typing import Any

import pytest

try:
    import resource
except ImportError:  # Windows: the children's time is not told
    resource = None  # type: ignore[assignment]

KEPT = "workbench/cpu_seconds"  # in pytest's cache: node id -> CPU seconds


def children() -> float:
    """CPU seconds of the processes that this one has waited for."""
    if resource is None:
        return 0.0
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def worked() -> tuple[float, float] | None:
    """What all processors of this machine have worked since it started, and what they could have,
    in one unit; None where Linux does not tell."""
    try:
        told = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    ticks = [float(each) for each in told]  # user, nice, system, idle, waiting for disks, …
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


class Compiling:
    """CPU seconds that numba spent compiling in this process."""

    def __init__(self) -> None:
        self.seconds, self._depth, self._since, self._listens = 0.0, 0, 0.0, False

    def listen(self) -> None:
        """From now on, once numba is there at all."""
        if self._listens or "numba" not in sys.modules:
            return
        import numba  # whole, though another thread may be importing it

        event, compiling = numba.core.event, self

        class Listener(event.Listener):
            def on_start(self, told: Any) -> None:
                compiling.begins()

            def on_end(self, told: Any) -> None:
                compiling.ends()

        event.register("numba:compile", Listener())
        self._listens = True

    def begins(self) -> None:
        """A compilation, perhaps inside another."""
        if self._depth == 0:
            self._since = thread_time()
        self._depth += 1

    def ends(self) -> None:
        if self._depth == 1:
            self.seconds += max(0.0, thread_time() - self._since)
        self._depth = max(0, self._depth - 1)


class Spent:
    """Adds what each test spent, in whichever worker it ran, and keeps it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.compiling = Compiling()
        self.before = 0.0, 0.0  # of this process, and of those it had waited for
        self.seconds: dict[str, float] = {}
        self.whole = self.compiled = 0.0  # of all workers: CPU seconds, and of them compiling
        self.begun, self.worked = time.monotonic(), worked()

    def _now(self) -> tuple[float, float]:
        return process_time() - self.compiling.seconds, children()

    def pytest_runtest_logstart(self) -> None:
        self.compiling.listen()
        self.before = self._now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = self._now()
        own, others = (after - before for after, before in zip(now, self.before, strict=True))
        # A server that other tests started long ago may have been waited for just now, and with it
        # what its children took: the one that ranks are forked from, the app at a session's end.
        # Together they cannot have taken more than all processors for as long as this test lasted.
        room = report.duration * (os.cpu_count() or 1) - max(0.0, own)
        others = min(others, max(0.0, room))
        report.cpu_seconds = max(0.0, own) + others  # travels from a worker to the one above
        self.before = now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not self.is_worker:
            spent = getattr(report, "cpu_seconds", 0.0)
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + spent

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended."""
        whole, compiled = getattr(node, "workeroutput", {}).get("spent", (0.0, 0.0))
        self.whole += whole
        self.compiled += compiled

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.whole:  # no workers: the tests are all there is
            return
        tests = sum(self.seconds.values())
        rest = self.whole - self.compiled - tests
        busy, now = "", worked()
        if self.worked and now and now[1] > self.worked[1]:
            share = (now[0] - self.worked[0]) / (now[1] - self.worked[1])
            busy = f"; processors were busy {share:.0%} of {time.monotonic() - self.begun:.0f} s"
        terminalreporter.write_line(
            f"CPU seconds: {tests:.0f} of tests, {self.compiled:.0f} compiling kernels, "
            f"{rest:.0f} else in workers and what they waited for{busy}"
        )

    def pytest_sessionfinish(self) -> None:
        if self.is_worker:
            spent = process_time() + children(), self.compiling.seconds
            self.config.workeroutput["spent"] = spent
        cache = getattr(self.config, "cache", None)
        if not self.is_worker and cache is not None and self.seconds:
            cache.set(KEPT, {test: round(spent, 3) for test, spent in self.seconds.items()})
