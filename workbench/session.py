"""A session: one person at one study. Knobs become a Config, a Config becomes a Run.

The only place that starts runs for a page. Changes are validated at once, and the first starts a
run at once; more of them wait until that run has had a short while, so that dragging a slider
starts a few runs and not fifty. A new run stops the one before it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from engine.core.config import Config, knobs, update
from engine.core.run import Driver, Run
from workbench.study import Study

REST = 0.06  # seconds between two runs that turned knobs start
KEEP = 12  # runs kept for comparing; the oldest go first
EVENTS = 4_000_000  # events kept in all of a session's runs together, and of one run at most
IDLE = 1800.0  # seconds a run goes on after the last knob was turned


class Session:
    """Starts runs of `driver`, one at a time; keeps the latest ones.

    `run` is the newest run (None before the first). Whoever shows it looks at `run` on its own
    timer; nothing is called back from the threads of a run.
    """

    def __init__(
        self, driver: Driver, config: Config, *, study: str = "", seed: int = 0, rest: float = REST
    ) -> None:
        self.driver, self.config, self.study, self.seed = driver, config, study, seed
        self.rest = rest  # seconds
        self.start: Config = config  # what `reset` goes back to
        self.runs: list[Run] = []
        self._begun = -rest  # when the newest run began, as `time.monotonic` counts
        self.turned = time.monotonic()  # when a person last did something here
        self.said = ""  # why the newest run was stopped for everyone's sake, "" where it was not
        # Whoever shares out a server hears of new runs, and says when none may grow any more.
        self.begun: Callable[[], None] = lambda: None
        self.full: Callable[[], bool] = lambda: False
        self.watched: Callable[[], bool] = lambda: True  # whether a browser holds its page now
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()
        self._closed = False

    @property
    def run(self) -> Run | None:
        """The newest run."""
        runs = self.runs
        return runs[-1] if runs else None

    def turn(self, changes: dict[str, Any]) -> Config:
        """Set knobs; a run starts at once or soon. Raises BadInput and changes nothing."""
        with self._lock:
            self.config = update(self.config, changes)
            self._later()
            return self.config

    def become(self, config: Config) -> None:
        """Take a whole config at once, as a preset or an address does; the present one again
        changes nothing."""
        with self._lock:
            if config != self.config:
                self.config = config
                self._later()

    def reset(self) -> None:
        self.become(self.start)

    def _later(self) -> None:
        """Start a run, at once or when the one before has had its while: the one debounce between a
        hand and a run."""
        wait = self._begun + self.rest - time.monotonic()
        if wait <= 0:
            self.begin()
        elif self._timer is None and not self._closed:
            self._timer = threading.Timer(wait, self.begin)
            self._timer.daemon = True
            self._timer.start()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def begin(self, *, paused: bool = False) -> Run | None:
        """Start a run of the present config now, stopping the one before; None when closed.

        `paused`: it stands before its first step.
        """
        with self._lock:
            self._cancel()
            if self._closed:
                return None
            if self.run is not None:
                self.run.stop()
            self.turned = self._begun = time.monotonic()
            self.said = ""
            run = Run.start(
                self.driver, self.config, seed=self.seed, study=self.study, paused=paused
            )
            self.keep(run)
        self.begun()
        return run

    def start_waiting(self) -> Run | None:
        """The run of the present config: started now where one waits, or where there is none."""
        with self._lock:
            if self._timer is not None or self.run is None:
                self.begin()
            return self.run

    def settle(self, timeout: float | None = None) -> Run | None:
        """Start what is waiting, wait for the newest run to end, and return it."""
        run = self.start_waiting()
        return run.wait(timeout) if run is not None else None

    def keep(self, run: Run) -> None:
        """Put a run (started here or opened from a file) at the end of the list, within limits."""
        with self._lock:
            self.runs.append(run)
            while (len(self.runs) > KEEP or self.events > EVENTS) and self.drop_oldest():
                pass

    def tend(self, now: float | None = None) -> None:
        """Stop the newest run where nobody attends to it any more, or where it has grown too long.

        `now`: seconds as `time.monotonic` counts them. `said` tells why it was stopped.
        """
        run = self.run
        if run is None or run.state == "closed" or self.said:
            return
        idle = (time.monotonic() if now is None else now) - self.turned
        if len(run.log) > EVENTS:
            self.said = f"Stopped at {EVENTS:,} events, the most one run may keep here."
        elif self.full():
            self.said = "Stopped: the runs on your pages are as long as they may be together."
        elif idle > IDLE:
            self.said = f"Stopped: no knob was turned for {IDLE / 60:.0f} minutes."
        if self.said:
            self.end(f"{self.said} Turn a knob to run again.")

    def end(self, why: str) -> None:
        """Stop the newest run for everyone's sake; `why` is a sentence for its page."""
        if self.run is not None:
            self.said = why
            self.run.stop()

    def let_go(self, why: str) -> None:
        """Stop and forget every run, as `end` does."""
        with self._lock:
            self.end(why)
            self.runs.clear()

    def drop_oldest(self) -> bool:
        """Forget the oldest run but the newest; whether there was one."""
        with self._lock:
            if len(self.runs) < 2:
                return False
            self.runs.pop(0).stop()
            return True

    @property
    def is_going(self) -> bool:
        """Whether the newest run is under way."""
        return self.run is not None and self.run.state != "closed"

    @property
    def events(self) -> int:
        """Events kept in all its runs."""
        return sum(len(run.log) for run in list(self.runs))

    def close(self) -> None:
        """Stop what runs and start nothing more."""
        with self._lock:
            self._closed = True
            self._cancel()
            for run in self.runs:
                run.stop()


def study_session(study: Study, config: Config, seed: int = 0) -> Session:
    """A session of a study with `config`; `reset` goes back to the study's own."""
    session = Session(study.driver, study.config, study=study.slug, seed=seed)
    session.config = config
    return session


def changed(before: Config, after: Config) -> dict[str, tuple[Any, Any]]:
    """Dotted knob path -> (value before, value after), for every knob that differs."""
    old = {knob.path: knob.value for knob in knobs(before)}
    new = {knob.path: knob.value for knob in knobs(after)}
    paths = [*old, *(path for path in new if path not in old)]
    return {p: (old.get(p), new.get(p)) for p in paths if old.get(p) != new.get(p)}
