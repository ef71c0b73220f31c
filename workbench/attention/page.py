"""The page of attention: any ended request of a real run, put through its model once more.

Above every head and one of them as tiles; below the run's page map at the moment the request still
held its pages. Choosing a page there marks its columns above, choosing a column marks its page.
"""

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.core.run import Run
from engine.inference.kept_tokens import kept
from widgets.attention.draw import draw, frame, waits
from widgets.stage.stage import Stage, every
from workbench.attention.ended import ended, why_none
from workbench.attention.readings import Reading, Readings
from workbench.attention.routes import PLACE
from workbench.pages.frame.shell import Shell, address, asked, html
from workbench.pages.shelf.shelf import Shelf

LOOK = 100  # milliseconds between looks at how far it is
MOST = 400  # requests to choose from; the newest ones
NEWEST = 20  # of which the longest is shown first
LIVE = "live"  # how the address names the live engine's run
ABOUT = (
    "Each square below is one head. The picture beside it is that head: a row for each token that "
    "looks, a column for each token looked at, stronger where more of its attention goes. A column "
    "that is strong all the way down is a sink."
)


class AttentionPage:
    """Which request on top, its heads and tiles under it, the cache below. `bare`: the styles of
    a page alone in a notebook's cell."""

    def __init__(
        self, run: Run, named: str, readings: Readings, request: str = "",
        bare: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.run, self.named, self.readings = run, named, readings
        self.shell = Shell("Attention", "attention", bare=bare is not None)
        self.shell.page.param.update(sx={**self.shell.page.sx, **(bare or {})})
        self.drawing, self.stage = draw(), Stage(("page_map",))
        self.reading: Reading | None = None
        self.shown: Reading | None = None
        self.moment: float | None = None  # where the cursor is to stand
        self.pages: dict[int, int] = {}  # page -> first position
        names = list(kept(run.log.blobs))[-MOST:]
        if request and request not in names:
            names.append(request)
        self.chooser = pmui.Select(
            label="Request", options=names or [""], value=request or _telling(run),
            size="small", width=220, margin=(8, 12, 0, 0), disabled=not names,
        )  # fmt: skip
        self.newer = pmui.Button(
            label="Newer requests", size="small", variant="outlined", margin=(6, 12),
            visible=run.state != "closed",
        )  # fmt: skip
        self.stop_button = pmui.Button(
            label="Stop", size="small", variant="outlined", margin=(6, 0), visible=False
        )
        self.chooser.param.watch(lambda event: self.read(event.new), "value")
        self.newer.on_click(lambda _: self._offer())
        self.stop_button.on_click(lambda _: self.reading and self.reading.stop())
        self.drawing.on_choose(self._chose)
        self.map = self.stage.feeds[0].drawing
        self.map.on_window(lambda window: self._page(int(window.get("page", -1))))  # type: ignore[attr-defined]
        self.stage.watch(self._place)
        self.read(self.chooser.value)

    def read(self, request: str) -> None:
        """Compute that request's attention and show it once it is there."""
        if self.reading is not None:
            self.readings.end(self.reading)
            self.reading = None
        if not request:
            self.drawing.show(waits(why_none(self.run)), 0.0)
            return
        try:
            found = ended(self.run, request)
        except BadInput as fault:
            self.drawing.show(waits(str(fault)), 0.0)
            return
        self.reading = self.readings.begin(found)
        self.moment, self.pages = found.moment, {page: start for start, page in found.pages}
        self.look()

    def look(self) -> None:
        """Say how far it is, or show it."""
        reading = self.reading
        if reading is None or reading is self.shown:
            return
        over = reading.tiles is not None or bool(reading.failure)
        if self.stop_button.visible == over:
            self.stop_button.visible = not over
        if reading.failure:
            self.drawing.show(waits(reading.failure), 0.0)
            self.shown = reading
        elif reading.tiles is not None and reading.grid is not None:
            self.shown, found = reading, reading.ended
            self.drawing.show(
                frame(
                    f"./{PLACE}/{reading.key}", reading.texts, reading.grid.thumbs,
                    reading.grid.sinks, top=reading.tiles.top, pages=found.pages,
                    page_size=found.page_size, sampled=reading.grid.sampled,
                ), 0.0,
            )  # fmt: skip
        else:
            line = f"Putting {reading.ended.name} through {reading.ended.config.get('model', '')}"
            far = f": {reading.done:,} of {reading.of:,} tokens" if reading.of else ""
            self.drawing.show(waits(f"{line} once more{far} …"), 0.0)

    def _offer(self) -> None:
        """List the requests that have ended since."""
        names = list(kept(self.run.log.blobs))[-MOST:]
        if names and names != self.chooser.options:
            self.chooser.param.update(options=names, disabled=False, value=_telling(self.run))

    def _place(self) -> None:
        """Put the cache's cursor where the request still held its pages."""
        cursor = self.stage.cursor
        if self.moment is not None and self.stage.tracks[0].run is not None:
            cursor.duration = self.run.log.duration
            cursor.fit()
            cursor.seek(self.moment)
            self.stage.choose(self.chooser.value or "")
            self.moment = None

    def _chose(self, chosen: str) -> None:
        """A column's page was chosen above: outline it below."""
        kind, _, number = chosen.partition(":")
        pages = [int(number)] if kind == "page" and number.isdigit() else []
        self.map.light(pages)  # type: ignore[attr-defined]

    def _page(self, page: int) -> None:
        """A page was chosen below: mark its columns above."""
        wanted = f"page:{page}" if page in self.pages else ""
        self.drawing.choose(wanted)
        self._chose(wanted)

    def page(self) -> Any:
        shell, stage = self.shell, self.stage
        stage.open(self.run)
        shell.on_dark(self.drawing.dark)
        shell.on_dark(stage.dark)
        stage.hosted()
        stage.tick()
        shell.page.param.update(main_width=1800)
        head = (
            f"<h1>Attention of one request of {escape(self.named)}</h1>"
            f"<p class='faint small'>{ABOUT}</p>"
        )
        shell.page.main = [
            pn.Column(
                pn.Row(
                    html(head), self.chooser, self.newer, self.stop_button,
                    sizing_mode="stretch_width", margin=(0, 0, 4, 0),
                ),
                self.drawing.__panel__(), *map(stage.card, stage.feeds), stage.transport.bar,
                sizing_mode="stretch_width", margin=(12, 28),
            )
        ]  # fmt: skip
        pn.state.onload(self.start)
        pn.state.on_session_destroyed(self.close)
        return shell.page

    def start(self) -> None:
        self.stage.start()
        self._looking = every(LOOK, self.look)

    def close(self, *_: Any) -> None:
        if self.reading is not None:
            self.readings.end(self.reading)


def _telling(run: Run) -> str:
    """The longest of the newest requests: one of a few tokens has little to show."""
    found = list(kept(run.log.blobs).items())[-NEWEST:]
    return max(found, key=lambda item: len(item[1]), default=("", None))[0]


def asked_page(shelf: Shelf, live: Run | None, readings: Readings) -> AttentionPage:
    """The page of the address: `run`, as the shelf lists it, or the live engine's; `request`.

    Raises BadInput for a run that is not here.
    """
    name = asked("run", LIVE)
    if name == LIVE:
        if live is None:
            raise BadInput(
                "attention: the live engine has not begun; open its page and ask it something"
            )
        return AttentionPage(live, "the live engine", readings, asked("request"))
    session = shelf.shown.get(name)
    run = session.run if session is not None and session.run is not None else shelf.get(name)
    return AttentionPage(run, name, readings, asked("request"))


def link(run: str, dark: bool, request: str = "") -> str:
    """The way to a run's attention, or one request's, as escaped HTML; in a tab of its own, since a
    page that is left stops what it runs."""
    to = address("attention", dark, run=run, **({"request": request} if request else {}))
    words = f"Attention of {request} →" if request else "Attention →"
    return (
        f'<a href="{escape(to)}" target="_blank" rel="noopener" '
        f'title="Which tokens each token of a request looks at">{escape(words)}</a>'
    )
