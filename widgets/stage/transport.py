"""Transport: the page's one time cursor and the bar that moves it, for live and recorded runs.

On a live run that is followed, play, pause, step and stop act on the run itself; otherwise they
move the cursor through what has been recorded.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import param

from engine.core.run import Run
from widgets import theme
from widgets.page.batched_updates import batched_updates
from widgets.page.bundle import bundle
from widgets.page.component import Component

SPEEDS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
AT_FOOT = {"position": "sticky", "bottom": "0", "z-index": "5"}  # in sight however long the page
MOST_STEPS = 100_000  # told to the bar, which then needs no answer to step; of more, it asks
LARGEST = 1e15  # seconds or steps that a bar may name
SHOWN_IN = 12.0  # seconds a whole run takes at the speed it is given at first


class Cursor(param.Parameterized):
    """A moment of a run, shared by all views of a page. Seconds since the run opened.

    `speed` is run seconds for each second of the wall. `follow`: the newest moment, whatever it is.
    Only a cursor that a person has put somewhere stays there in the next run, at that share of it.
    """

    time = param.Number(default=0.0, bounds=(0, None))
    duration = param.Number(default=0.0, bounds=(0, None))
    playing = param.Boolean(default=False)
    speed = param.Number(default=1.0, bounds=(1e-6, 1e6))
    follow = param.Boolean(default=True)
    share = param.Number(default=None, allow_None=True, doc="of the run, where a person put it")
    carried = param.Boolean(default=False, doc="whether that was in an earlier run")

    @property
    def now(self) -> float:
        """Where the cursor stands: the end while it follows."""
        return self.duration if self.follow else min(self.time, self.duration)

    def seek(self, time: float) -> None:
        """Stand still at `time`, where a person put it."""
        place = min(max(0.0, time), self.duration)
        share = place / self.duration if self.duration else 1.0
        self.param.update(time=place, playing=False, follow=False, share=share, carried=False)

    def rest(self, time: float) -> None:
        """Stand still at a telling moment of this run; the next is followed anew."""
        self.param.update(time=time, playing=False, follow=False, share=None, carried=False)

    def open(self, duration: float) -> None:
        """Another run, so long by now: at its end from now on, or where a person would have it."""
        follows = self.share is None
        time = duration if follows else self.share * duration
        self.param.update(
            duration=duration, time=time, playing=False, follow=follows, carried=not follows
        )

    def grow(self, duration: float) -> None:
        """The run is so long by now."""
        kept = {"time": self.share * duration} if self.carried else {}
        self.param.update(duration=duration, **kept)

    def play(self) -> None:
        """Move on from here, or from the start where the end is reached."""
        start = 0.0 if self.now >= self.duration else self.now
        self.param.update(time=start, playing=True, follow=False, share=None, carried=False)

    def tick(self, wall: float) -> None:
        """Let `wall` seconds pass."""
        if self.playing:
            time = self.time + wall * self.speed
            ended = time >= self.duration
            self.param.update(time=min(time, self.duration), playing=not ended)

    def fit(self) -> None:
        """The speed at which the whole run takes a dozen seconds, rounded to one of `SPEEDS`."""
        wanted = max(self.duration, 1e-9) / SHOWN_IN
        self.speed = min(SPEEDS, key=lambda speed: abs(math.log(speed / wanted)))


def colours() -> dict[str, dict[str, str]]:
    """The neutrals, the accent and the font of both themes, as the bar's style wants them."""
    both = {}
    for name, dark in (("light", False), ("dark", True)):
        both[name] = {**asdict(theme.scheme(dark)), "hue": theme.hues(dark)[0], "font": theme.FONT}
    return both


class TransportBar(Component):
    """The bar in the browser. Knows nothing; `command` says what a person did."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    time = param.Number(default=0.0)
    duration = param.Number(default=0.0)
    playing = param.Boolean(default=False)
    speed = param.Number(default=1.0)
    follow = param.Boolean(default=True)
    live = param.Boolean(default=False)
    paused = param.Boolean(default=False)
    modelled = param.Boolean(default=False)
    steps = param.Bytes(default=b"", doc="when each step of a run that is over ended, as float64")
    work = param.Dict(default={})
    pinned = param.String(default="", doc="the owner lit up in every view")
    is_dark = param.Boolean(default=False)
    options = param.Dict(default={})
    command = param.Dict(default={})
    cards = param.Integer(default=0, doc="how many views stand on the page")
    sought = param.Integer(default=-1, doc="the view that a person came for, by its place")
    sight = param.List(default=[], doc="whether each of them is in sight, told by the browser")


class Transport:
    """Joins a cursor, a run and the bar. `steps` gives the times of the run's steps, rising;
    `moved` is called when a person has moved the cursor, `unpin` when all is to be lit up."""

    def __init__(
        self,
        cursor: Cursor,
        steps: Callable[[], Sequence[float]],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.cursor, self.steps, self.moved = cursor, steps, moved
        self.run: Run | None = None
        self._knows = False  # the bar knows when the steps ended
        self.unpin: Callable[[], None] = lambda: None
        self.bar = TransportBar(
            options=colours(), sizing_mode="stretch_width", margin=0, min_height=44, styles=AT_FOOT
        )
        self.bar.param.watch(lambda event: self.told(event.new), "command")
        shared = ["time", "duration", "playing", "speed", "follow"]
        self.bar.param.update(**{name: getattr(cursor, name) for name in shared})
        cursor.param.watch(self._moved, shared)

    def attach(self, run: Run | None) -> None:
        """Control `run` from now on."""
        self.run, self._knows = run, False
        self.bar.send(steps=b"")
        self.refresh()

    def refresh(self, work: dict[str, Any] | None = None) -> None:
        """Show the run's state and, where some is under way, how far long `work` is."""
        run = self.run
        header = run.log.opened if run is not None else None
        self.bar.send(
            live=run is not None and run.state != "closed",
            paused=run is not None and run.state == "paused",
            modelled=header is not None and header.clock == "virtual",
            work=work or {},
        )

    def know_steps(self) -> None:
        """The run is over and `steps` are all it took: with them the bar needs no answer to step,
        unless they are too many to send."""
        if not self._knows:
            self._knows = True
            times = self.steps()
            if len(times) <= MOST_STEPS:
                self.bar.send(steps=array("d", times).tobytes())

    def _moved(self, *events: Any) -> None:
        self.bar.send(**{event.name: event.new for event in events})

    @property
    def _on_run(self) -> bool:
        """Whether the controls act on the run and not on the recording."""
        return self.cursor.follow and self.run is not None and self.run.state != "closed"

    def told(self, command: dict[str, Any]) -> None:
        """Do what a person asked for; anything else is ignored."""
        number = command.get("time", command.get("speed", command.get("by", 0)))
        if not isinstance(number, int | float) or not abs(number) < LARGEST:
            return
        with batched_updates():
            self._do(command.get("do"), number)
            self.refresh()
            self.moved()

    def _do(self, what: Any, number: float) -> None:
        match what:
            case "toggle":
                self.toggle()
            case "step":
                self.step(int(number))
            case "seek":
                self.cursor.seek(number)
            case "speed" if number > 0:
                self.cursor.speed = min(max(number, 1e-6), 1e6)
            case "follow":
                self.cursor.share = None
                self.cursor.open(self.cursor.duration)
            case "unpin":
                self.unpin()
            case "stop" if self.run is not None:
                self.run.stop()

    def toggle(self) -> None:
        """Play or pause: the run itself while it is followed, else the recording."""
        if self._on_run and self.run is not None:
            if self.run.state == "paused":
                self.run.resume()
            else:
                self.run.pause()
        elif self.cursor.playing:
            self.cursor.seek(self.cursor.time)
        else:
            self.cursor.play()

    def step(self, by: int) -> None:
        """`by` scheduler steps on or back; a live run that is followed takes them."""
        if by > 0 and self._on_run and self.run is not None:
            self.run.step(by)
            return
        self.cursor.seek(stepped(self.steps(), self.cursor.now, by, self.cursor.duration))

    def dark(self, on: bool) -> None:
        self.bar.is_dark = on

    def __panel__(self) -> Any:
        return self.bar


def stepped(steps: Sequence[float], now: float, by: int, stop: float) -> float:
    """The time `by` steps from `now`: the start before the first, `stop` after the last."""
    if by > 0:
        place = bisect_right(steps, now) + by - 1
        return steps[place] if place < len(steps) else stop
    place = bisect_left(steps, now) + by
    return steps[place] if place >= 0 else 0.0
