"""A run: an event log and, while live, the driver that fills it.

A driver is a function `(config, live) -> None`. It opens the log, emits events through `live.emit`
and calls `live.poll` once a step, where a person's commands reach it. A finished run, a recorded
one and a live one are the same object to every reader.
"""

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.clock import Aside, Clock, own
from engine.core.config import Config, to_dict
from engine.core.difference import relative
from engine.core.errors import BadInput
from engine.core.events import Blob, Closed, Level, Opened, Told
from engine.core.log import Log
from engine.core.machine import describe
from engine.core.memory import out_of_memory, refused
from engine.core.plot import MODELLED, Plot, curve

LEAVE = 5.0  # seconds a process that ends gives each of its runs to come to its next step
BUSY = 4.0  # further seconds for each second of processor time that the run had meanwhile
INBOX = 1000  # a person's commands that wait for a step
COMMAND = 100_000  # characters and parts of one; a prompt to a live engine is one


class Stopped(Exception):
    """Raised inside a driver when a person stopped the run; the run closes as "stopped"."""


@dataclass(slots=True)
class Progress:
    """How far long work is: what, how many of how many, and since when (wall seconds)."""

    what: str = ""
    done: float = 0.0
    total: float = 0.0
    since: float = 0.0

    def left(self) -> float | None:
        """Estimated seconds still to go; None while there is nothing to judge by."""
        if not self.total or self.done <= 0:
            return None
        return (time.monotonic() - self.since) * (self.total - self.done) / self.done


class Live:
    """What a driver sees of its run: where to emit, its seed, and a person's commands."""

    def __init__(self, log: Log, seed: int = 0, study: str = "") -> None:
        self.log, self.seed, self.study = log, seed, study
        self.emit = log.emit
        self.inbox: deque[dict[str, Any]] = deque()
        self.progress = Progress()
        self.aside = Aside()  # what the thread that drives the run spends beside it: compiling
        self._steps = 0  # steps still allowed while paused
        self._go = threading.Event()
        self._go.set()
        self._stop = False

    def open(
        self,
        config: Config,
        clock: Clock,
        *,
        plots: Sequence[Plot] = (),
        **facts: Any,
    ) -> None:
        """Emit the header: the config, this machine, the axes of `plots`, and `facts`, what views
        need and the config only implies."""
        if plots:
            facts["curves"] = {plot.title: plot.axes() for plot in plots}
        self.emit(
            Opened(0.0, to_dict(config), self.study, self.seed, clock.name, describe(), facts)
        )

    def keep(self, now: float, name: str, array: np.ndarray) -> None:
        """Put an array beside the log and tell of it; a later one of that name replaces it."""
        self.log.blobs[name] = array
        self.emit(Blob(now, name, name, list(array.shape)))

    def curve(
        self, now: float, plot: Plot, series: str, points: Any, *, modelled: bool = False
    ) -> None:
        """Put a series of a plot beside the log; a later one of that name replaces it.

        `points`: columns [2 or 4, K] (x, y and, where there is an interval, low, high), or rows of
        them as tuples. `modelled`: predicted, in a run that is measured otherwise.
        """
        self.keep(now, plot.name(series + (MODELLED if modelled else "")), curve(points))

    def error(self, now: float, of: str, found: Any, truth: Any, name: str = "error") -> float:
        """Tell, and return, how far `found` is from `truth` over the truth's largest number.

        Arrays of one shape, or lists of as many arrays each, of which the worst counts.
        """
        if isinstance(found, list):
            worst = max(relative(a, b) for a, b in zip(found, truth, strict=True))
        else:
            worst = relative(found, truth)
        self.emit(Level(now, of, name, worst))
        return worst

    def report(self, what: str, done: float, total: float) -> None:
        """Say how far the work is; shown beside the stop button."""
        if self.progress.what != what:
            self.progress = Progress(what, done, total, time.monotonic())
        else:
            self.progress.done, self.progress.total = done, total

    def poll(self, now: float) -> list[dict[str, Any]]:
        """Once a step: wait while paused, stop if told to, and take what a person said.

        Every command taken is emitted as `Told` at `now`. Raises Stopped.
        """
        if not self._go.is_set() and not self._stop:
            while not self._go.wait(0.05) and self._steps == 0 and not self._stop:
                if self.inbox:
                    break
            self._steps = max(0, self._steps - 1)
        if self._stop:
            raise Stopped
        taken = []
        while self.inbox:
            command = self.inbox.popleft()
            self.emit(Told(now, command))
            taken.append(command)
        return taken

    def pause(self) -> None:
        self._go.clear()

    def resume(self) -> None:
        self._go.set()

    def step(self, count: int = 1) -> None:
        self._go.clear()
        self._steps += count

    def stop(self) -> None:
        self._stop = True
        self._go.set()

    @property
    def paused(self) -> bool:
        return not self._go.is_set()


Driver = Callable[[Any, Live], None]


class Run:
    """A log with, while live, the thread that fills it."""

    def __init__(self, log: Log, config: Config | None = None, live: Live | None = None) -> None:
        self.log, self.config, self.live = log, config, live
        self.thread: threading.Thread | None = None
        self.failure: BaseException | None = None
        self.ended = threading.Event()  # set once a driver has ended
        self.path: Path | None = None

    @classmethod
    def start(
        cls,
        driver: Driver,
        config: Config,
        *,
        seed: int = 0,
        study: str = "",
        paused: bool = False,
    ) -> "Run":
        """Start `driver` on `config` in a thread of its own and return at once.

        `paused`: it stands before its first step until it is resumed or stepped.
        """
        log = Log()
        run = cls(log, config, Live(log, seed, study))
        if paused:
            run.pause()
        run.thread = threading.Thread(
            target=run._drive, args=(driver,), name=f"run {study}", daemon=True
        )
        # The exit function of finalizers stands before ours, so it comes after: what the thread
        # imports while we wait for it (torch) would otherwise be finalized in a bare interpreter.
        weakref.finalize(run, int)
        atexit.register(run._leave)
        run.thread.start()
        return run

    @classmethod
    def execute(cls, driver: Driver, config: Config, *, seed: int = 0, study: str = "") -> "Run":
        """Run `driver` here and now; raises what it raised."""
        log = Log()
        run = cls(log, config, Live(log, seed, study))
        run._drive(driver)
        run._raise()
        return run

    def _drive(self, driver: Driver) -> None:
        assert self.live is not None
        reason = "finished"
        self.live.aside = own()
        try:
            driver(self.config, self.live)
        except Stopped:
            reason = "stopped"
        except BadInput as fault:
            self.failure, reason = fault, str(fault)
        except BaseException as fault:
            # The thread ends here whatever happened; `wait` raises it where somebody looks.
            if refused(fault):
                fault = out_of_memory(fault)
            named = "" if isinstance(fault, BadInput) else f"{type(fault).__name__}: "
            self.failure, reason = fault, f"failed: {named}{fault}"
        self.log.emit(Closed(self.log.duration, reason))
        self.ended.set()
        atexit.unregister(self._leave)

    def _leave(self) -> None:
        """The process ends: a thread still in torch's code then would abort it.

        A first step that imports torch takes seconds of work, and many on a machine whose
        processors others have: a thread that gets on is given LEAVE seconds of work.
        """
        self.stop()
        since, worked = time.monotonic(), time.process_time()
        while not self.ended.wait(0.05):
            work = time.process_time() - worked
            if work > LEAVE or time.monotonic() - since > LEAVE + BUSY * work:
                return

    def _raise(self) -> None:
        if self.failure is not None:
            raise self.failure

    def wait(self, timeout: float | None = None) -> "Run":
        """Block until the driver has ended; raises what it raised."""
        # Not the thread's own join: an interrupt within it makes CPython 3.11 take a thread that
        # still works for ended.
        if self.thread is not None and self.ended.wait(timeout):
            self._raise()
        return self

    @property
    def state(self) -> str:
        """running, paused or closed."""
        if self.log.closed is not None or self.live is None:
            return "closed"
        return "paused" if self.live.paused else "running"

    def tell(self, /, **command: Any) -> None:
        """Put a person's command into the driver's inbox; it comes back as a `Told` event.

        One too large, or one too many before the next step, is left out.
        """
        if self.live is None or self.state == "closed" or len(self.live.inbox) >= INBOX:
            return
        if _largeness(command) <= COMMAND:
            self.live.inbox.append(command)

    def pause(self) -> None:
        if self.live is not None:
            self.live.pause()

    def resume(self) -> None:
        if self.live is not None:
            self.live.resume()

    def step(self, count: int = 1) -> None:
        """Let a paused run take `count` more steps."""
        if self.live is not None:
            self.live.step(count)

    def stop(self) -> None:
        """Ask the driver to end at its next step."""
        if self.live is not None:
            self.live.stop()


def _largeness(value: Any) -> int:
    """Characters and parts of a command; what it holds may hold more."""
    level, size = [value], 0
    while level and size <= COMMAND:
        one = level.pop()
        size += len(one) if isinstance(one, str | dict | list | tuple) else 1
        if isinstance(one, dict):
            level += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            level += one
    return size
