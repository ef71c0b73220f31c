"""The stage: views of one run (or of several, to compare) under one cursor, fed by one timer.

In goes a run; every tick folds for a bounded time, then sends one batch with what changed. Another
run takes the place of the first without a new drawing.
"""

import html
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import panel as pn
import param
from panel.io import PeriodicCallback

from engine.core.run import Run
from widgets import theme
from widgets.chart.picture import Scales
from widgets.page.batched_updates import batched_updates
from widgets.stage.feed import Feed
from widgets.stage.progress import work_of
from widgets.stage.track import GRACE, Track
from widgets.stage.transport import Cursor, Transport
from widgets.view import View, view

PERIOD = 16  # milliseconds between ticks: as often as a screen shows another picture
QUICK = 4  # the same while a run that has just begun may end at any moment
BUDGET = 0.02  # seconds a tick may fold
EAGER = 0.1  # the same where a run that is over has just come: there is nothing else to look at
SOON = 0.012  # seconds after a tick that had work within which a moved cursor waits for the next
AT_FIRST = 2  # views that are drawn before the browser has said which are in sight


class Stage(param.Parameterized):
    """Views on a page. `tracks`: how many runs stand beside one another (1, or more to compare)."""

    chosen = param.String(default="", doc="the owner lit up in every view; empty for none")
    is_dark = param.Boolean(default=False)
    goes_on = param.Boolean(default=False, doc="whether the (first) run does")

    def __init__(self, names: Sequence[str | View], tracks: int = 1) -> None:
        super().__init__()
        self.views = [view(name) if isinstance(name, str) else name for name in names]
        self.tracks = [Track(self.views) for _ in range(tracks)]
        self.cursor = Cursor()
        self.transport = Transport(self.cursor, self._steps, self._moved)
        self.transport.bar.param.watch(lambda event: self._look_at(event.new), "sight")
        self.transport.unpin = lambda: self.choose("")
        self._last = self._worked = perf_counter()
        self._turn = 0
        self._again = False
        self._is_new = False  # another run has come and not every view shows it yet
        self._timer: Any = None
        self._sight: list[bool] | None = None  # of each feed; None: nobody looks through a browser
        self._scales: dict[str, Scales] = {}
        self._looks: list[list[Any]] = []  # [what looks, its period, when it is due]
        self._notes = {feed: pn.pane.HTML("", visible=False, margin=0) for feed in self.feeds}
        for feed in self.feeds:
            self._listen(feed)
        for track in self.tracks:
            for feed in track.feeds:
                if hasattr(feed.drawing, "on_command"):
                    feed.drawing.on_command(track.tell)

    def _steps(self) -> Sequence[float]:
        return self.tracks[0].steps.state.frame()["times"]

    @property
    def feeds(self) -> list[Feed]:
        """Every feed, view by view, the tracks of one view side by side."""
        return [t.feeds[place] for place in range(len(self.views)) for t in self.tracks]

    def _listen(self, feed: Feed) -> None:
        feed.drawing.on_choose(self.choose)
        if hasattr(feed.drawing, "on_seek"):
            feed.drawing.on_seek(self.cursor.seek)
        if len(self.tracks) > 1 and hasattr(feed.drawing, "scales"):
            feed.drawing.scales = self._scales.setdefault(feed.view.name, Scales())

    def open(self, run: Run | None, track: int = 0) -> None:
        """Show `run`, live or recorded, from now on."""
        self.tracks[track].open(run)
        for scales in self._scales.values():
            scales.forget()
        if track == 0:
            self.transport.attach(run)
        self.cursor.open(self._duration())
        if run is not None and run.state == "closed":
            self.cursor.fit()
        self._is_new = True
        self._hurry()

    def _duration(self) -> float:
        return max((t.run.log.duration for t in self.tracks if t.run is not None), default=0.0)

    def _align(self, duration: float) -> None:
        """Runs that stand beside one another share the longest one's time axis."""
        for feed in self.feeds if len(self.tracks) > 1 else ():
            if hasattr(feed.drawing, "reach"):
                feed.drawing.reach(duration)

    def recent(self, seconds: float) -> None:
        """Let time axes show the last seconds of a run that goes on and on; all of it for 0."""
        for feed in self.feeds:
            if hasattr(feed.drawing, "recent"):
                feed.drawing.recent(seconds)

    def choose(self, owner: str) -> None:
        """Light up one owner in all views."""
        if owner != self.chosen:
            self.chosen = owner
            self.transport.bar.send(pinned=owner)
            for feed in self.feeds:
                feed.drawing.choose(owner)

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.is_dark = on
        self.transport.dark(on)
        for feed in self.feeds:
            feed.drawing.dark(on)

    @property
    def sighted(self) -> list[Feed]:
        """The feeds a person can see now; the others are neither folded nor drawn."""
        if self._sight is None:
            return self.feeds
        seen = zip(self.feeds, self._sight, strict=False)
        return [feed for feed, is_seen in seen if is_seen]

    def hosted(self) -> None:
        """A page is made of this: until its browser says what is in sight, the first views are."""
        count = len(self.tracks)
        self._sight = [place < AT_FIRST * count for place in range(len(self.feeds))]
        self.transport.bar.cards = len(self.feeds)

    def show_only(self, place: int) -> None:
        """A page shows one view at a time, as tabs do: this one now."""
        self.transport.bar.cards = 1  # what the browser says of one is no news of all
        self._sight = [i // len(self.tracks) == place for i in range(len(self.feeds))]

    def _look_at(self, sight: list[Any]) -> None:
        """The browser says of each view whether it is in sight."""
        if len(sight) == len(self.feeds):
            self._sight = [seen is True for seen in sight]

    def _moved(self) -> None:
        """A person moved the cursor: show it at once, unless a tick has just had work."""
        if self._timer is not None and perf_counter() - self._worked > SOON:
            self.tick()

    def watch(self, look: Callable[[], None], period: float = 0.0) -> None:
        """Let `look` be the first step of a tick from now on, at most once in `period` seconds."""
        self._looks.append([look, period, 0.0])

    def _look(self) -> None:
        now = perf_counter()
        for watch in self._looks:
            look, period, due = watch
            if now >= due:
                watch[2] = now + period
                look()

    def tick(self) -> bool:
        """Look what there is to show, fold for a bounded time and send one batch; True where all in
        sight is shown."""
        self._look()
        now = perf_counter()
        wall, self._last = min(now - self._last, 0.5), now
        if any(track.is_fresh for track in self.tracks):
            return False  # the run needs the processor more than its beginnings need showing
        if self._is_at_rest():
            return True
        with batched_updates():
            duration = self._duration()
            if duration != self.cursor.duration:
                self.cursor.grow(duration)
            self._align(duration)
            self.cursor.tick(wall)
            due = self._due()
            behind = self._fold(due, now + (EAGER if self._is_new else BUDGET))
            self._show(due, behind)
            self.transport.refresh(work_of(self.tracks[0].run, self.tracks[0].opened, behind))
            self.goes_on = self.transport.bar.live
            if self.tracks[0].knows_steps:
                self.transport.know_steps()
            shown = all(feed.is_shown(self.cursor.now) for feed in self.sighted)
        self._worked = perf_counter()
        return shown and not behind and not self._again and not self._is_new

    @property
    def has_shown(self) -> bool:
        """Whether the newest run is seen, or takes long: then there is time for other things."""
        return not self._is_new and not any(track.is_fresh for track in self.tracks)

    def _is_at_rest(self) -> bool:
        """Whether a run that is over stands shown as it is; then a tick costs next to nothing."""
        at, follow = self.cursor.now, self.cursor.follow
        rests = not (self.cursor.playing or self._again or self._is_new or self.transport.bar.work)
        return (
            rests
            and self._duration() == self.cursor.duration
            and all(track.run is None or track.run.state == "closed" for track in self.tracks)
            and not self.transport.bar.live
            and all(feed.is_current(at, follow) for feed in self.sighted)
            and all(track.knows_steps for track in self.tracks if track.run is not None)
        )

    def _due(self) -> list[Feed]:
        """The views this tick works on: all of them, but when a run that is over has replaced
        another, the topmost one that does not show it yet: it is seen before the rest is folded.
        While the run is played it never shows the moment that is now, and the others take turns."""
        feeds = self.sighted
        is_over = all(feed.log.closed is not None for feed in feeds)
        if self._timer is None or len(self.tracks) > 1 or not is_over or self.cursor.playing:
            self._is_new = False
        if self._is_new:
            for feed in feeds:
                if not feed.is_current(self.cursor.now, self.cursor.follow):
                    return [feed]
            self._is_new = False
        return feeds

    def _fold(self, due: list[Feed], deadline: float) -> list[Feed]:
        """Fold feeds towards the cursor; those that are not there yet."""
        feeds = due if self._is_new and due else [*due, *(track.steps for track in self.tracks)]
        self._turn = (self._turn + 1) % len(feeds)  # so that no view is always the last in line
        behind = []
        for feed in feeds[self._turn :] + feeds[: self._turn]:
            if not feed.advance(self.cursor.now, self.cursor.follow, deadline):
                behind.append(feed)
        return behind

    def _show(self, due: list[Feed], behind: list[Feed]) -> None:
        again, self._again = self._again, False
        for feed in due:
            is_still = feed.log.closed is not None  # its last state is drawn without a rest
            hurry = feed not in behind and not self.cursor.playing and is_still
            stale = feed.is_stale
            if feed.show(self.cursor.now, hurry, again) and stale and len(self.tracks) > 1:
                self._again = True  # the others' axes may have to follow
            note = self._notes[feed]
            if note.visible != bool(feed.failure):
                note.param.update(object=_fault(feed.failure, self.is_dark), visible=True)

    def start(self) -> None:
        """Tick from now on, in the page (or notebook) this is called from."""
        if self._timer is None:
            self._timer = every(PERIOD, self.tick)

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _hurry(self) -> None:
        """After a change: tick soon and often until the new run is on the screen."""
        document = pn.state.curdoc
        if self._timer is None or document is None:
            return
        until = perf_counter() + GRACE + 1.0

        def soon() -> None:
            if not self.tick() and perf_counter() < until:
                document.add_timeout_callback(soon, QUICK)

        document.add_timeout_callback(soon, 1)

    def card(self, feed: Feed) -> pn.Column:
        """One view in its frame."""
        return pn.Column(
            feed.drawing.__panel__(), self._notes[feed], sizing_mode="stretch_width",
            css_classes=["pw-card"], stylesheets=[CARD], margin=(0, 0, 12, 0),
        )  # fmt: skip

    def __panel__(self) -> Any:
        self.hosted()
        self.tick()  # so that the page arrives with a picture in it
        cards = [self.card(feed) for feed in self.feeds]
        return pn.Column(*cards, self.transport.bar, sizing_mode="stretch_width", margin=0)


def every(milliseconds: int, act: Callable[[], Any]) -> PeriodicCallback:
    """Call `act` again and again in the page this is called from.

    In the background: `pn.state.add_periodic_callback` turns the page's busy sign on and off for
    every call, which at this pace leaves the server no time for anything else.
    """
    made = PeriodicCallback(callback=act, period=milliseconds, background=True, log=False)
    made.start()
    return made


def _fault(text: str, dark: bool) -> str:
    colour = theme.wrong(dark)
    return f'<p style="font:14px {theme.FONT};color:{colour};margin:4px 0">{html.escape(text)}</p>'


CARD = ":host(.pw-card) { padding: 0 0 4px; }"
