"""The runs page: a table of runs; open, rename and drop one, watch it again, save, export it."""

from collections.abc import Callable
from functools import partial
from html import escape
from threading import Thread
from time import perf_counter
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.core.run import Run
from engine.inference.kept_tokens import kept
from widgets.export.share import share
from widgets.stage.stage import Stage
from widgets.stage.telling import telling
from workbench.attention.page import link
from workbench.pages.frame.shell import Shell, address, asked, figures_table, html
from workbench.pages.shelf.file_field import FileField
from workbench.pages.shelf.runs_table import CSS, runs_table
from workbench.pages.shelf.shelf import NAME, Shelf
from workbench.pages.shelf.uploads import UPLOAD, read_uploads
from workbench.pages.suggested_views import suggested_views
from workbench.pages.trace_tables import of_run
from workbench.summary import rows

PAUSE = 1.0  # seconds between figures of a run that goes on
SHARE = 20  # and at least so many times as long as they take


class RunsPage:
    """A select of the open runs, a way to open more, and the chosen one's views."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.shell = shelf, Shell(asked("name") or "Runs", "runs", tab="Runs")
        self.fault, self.table = html("", margin=(8, 0)), html("", CSS)
        wanted = self._asked()
        self.choice = pmui.Select(label="Run", options=list(shelf.runs), size="small", width=300,
                                  margin=(10, 4, 10, 0))  # fmt: skip
        self.upload = FileField(
            accept=".run,.json,.gz,.sqlite", multiple=True, margin=(0, 0, 6, 0),
            max_total_file_size=UPLOAD,  # told before it is sent
            label="Open a run, a trace, or the traces of a job's ranks",
        )  # fmt: skip
        self.name = pmui.TextInput(label="Rename", size="small", width=260, margin=(10, 4))
        self.tags = pmui.TextInput(
            label="Tags, by commas", size="small", width=170, margin=(10, 4)
        )  # fmt: skip
        self.drop = pmui.Button(label="Drop it", size="small", variant="outlined", margin=(14, 4))
        self.place = pn.Column(sizing_mode="stretch_width", margin=(4, 0))
        self.stage: Stage | None = None
        self.shell.on_dark(self._dark)
        self.choice.param.update(value=wanted, visible=bool(shelf.runs))
        # Also a file of the same bytes as the last one: whoever sends it waits for an answer.
        self.upload.param.watch(self._opened, "value", onlychanged=False)
        self.choice.param.watch(self.show, "value")
        self.name.param.watch(self._renamed, "enter_pressed")
        self.tags.param.watch(self._tagged, "enter_pressed")
        self.drop.on_click(self._dropped)
        self.show()

    def _dark(self, on: bool) -> None:
        if self.stage is not None:
            self.stage.dark(on)
        self._list()

    def _list(self) -> None:
        """The table and the controls of the chosen run, as the shelf is now."""
        to = partial(address, dark=self.shell.dark)
        tag, dark = asked("tag"), self.shell.dark
        self.table.object = runs_table(self.shelf, self.choice.value, to, tag, dark)
        for part in (self.choice, self.name, self.tags, self.drop):
            part.visible = bool(self.choice.value)

    def _renamed(self, _: Any) -> None:
        old, wanted = self.choice.value, self.name.value_input or self.name.value
        self._change(lambda: self.shelf.rename(old, wanted), " ".join(wanted.split()))

    def _tagged(self, _: Any) -> None:
        try:
            self.shelf.tag(self.choice.value, self.tags.value_input or self.tags.value)
        except BadInput as wrong:
            self._say(str(wrong))
            return
        self._say("")
        self._list()

    def _dropped(self, _: Any) -> None:
        name = self.choice.value
        rest = [other for other in self.shelf.runs if other != name]
        self._change(lambda: self.shelf.drop(name), rest[-1] if rest else None)

    def _change(self, act: Callable[[], None], then: str | None) -> None:
        """Change the shelf and show the run called `then`, or say in a line why not."""
        try:
            act()
        except BadInput as wrong:
            self._say(str(wrong))
            return
        self._say("")
        chosen = next((n for n in self.shelf.runs if then and n == then[:NAME]), None)
        self.choice.param.update(options=list(self.shelf.runs), value=chosen)
        self.show()

    def _say(self, line: str) -> None:
        self.fault.object = f'<p style="color:var(--wb-wrong)">{escape(line)}</p>' if line else ""

    def _asked(self) -> str | None:
        """The run the address asks for, else the newest. Raises BadInput for a bad run file."""
        if asked("file"):
            return self.shelf.file(asked("file"))
        if asked("name"):
            return self.shelf.named(asked("name"))
        return next(reversed(self.shelf.runs), None)

    def show(self, *_: Any) -> None:
        """Lay out the chosen run; of one that another page has dropped, say so."""
        if self.choice.value and self.choice.value not in self.shelf.runs:
            self._say(f"run {self.choice.value!r}: no longer on the shelf")
            left = list(self.shelf.runs)  # the newest of them is shown
            self.choice.param.update(options=left, value=left[-1] if left else None)
            return
        self._list()
        self.name.value = self.choice.value or ""
        self.tags.value = ", ".join(self.shelf.tags.get(self.choice.value or "", ()))
        if self.stage is not None:
            self.stage.stop()
            self.stage = None
        if not self.choice.value:
            self.place.objects = [html(EMPTY)]
            return
        run = self.shelf.get(self.choice.value)
        shown = suggested_views(run.log)
        self.stage = Stage(shown)
        self.stage.dark(self.shell.dark)
        self.stage.open(run)
        moment = telling(run.log, shown) if run.state == "closed" else None
        if moment is not None:
            self.stage.cursor.rest(moment)
        way = link(self.choice.value, self.shell.dark) if kept(run.log.blobs) else ""
        self.place.objects = [
            self._share(run, self.choice.value.removesuffix(".run")),
            *([html(f"<p>{way}</p>", margin=(0, 0, 8, 0))] if way else []),
            *filter(None, [of_run(run.log)]),
            self.stage.__panel__(),  # before the figures: it is what a person came to see
            Figures(run, self.stage).pane,
        ]
        self.stage.start()

    def _share(self, run: Run, title: str) -> Any:
        menu = share(
            lambda: run.log, suggested_views(run.log), title=title, is_dark=lambda: self.shell.dark
        )
        self.shell.on_dark(menu.dark)
        return menu

    def _opened(self, event: Any) -> None:
        try:
            run, name = read_uploads(event.new or [], self.upload.filename)
            name = self.shelf.keep(run, name)
        except BadInput as wrong:
            self._say(str(wrong))
            return
        self._say("")
        self.choice.options = list(self.shelf.runs)
        self.choice.value = name

    def page(self) -> Any:
        head = html(
            "<h1>Runs</h1><p class='faint'>A recorded run is a run: play, scrub, export.</p>"
        )
        self.shell.page.param.update(main_width=1560, app_bar_width="100%")
        own = (self.choice, self.name, self.tags, self.drop)
        controls = pn.FlexBox(*own, margin=(4, 0, 0, 0), align_items="center")
        top = pn.Row(head, self.upload, sizing_mode="stretch_width")
        self.shell.page.main = [
            pn.Column(
                top,
                self.table,
                controls,
                self.fault,
                self.place,
                sizing_mode="stretch_width",
                margin=(28, 40),
            )
        ]
        return self.shell.page


class Figures:
    """The table of a run's figures, told anew while the run goes on."""

    def __init__(self, run: Run, stage: Stage) -> None:
        self.run, self._due = run, 0.0
        self._told: str | None = None  # by the thread that reads a log that grows
        self._reads = False
        self.pane = html("", margin=(20, 0))
        stage.cursor.param.watch(self._grown, "duration")
        stage.param.watch(self._tell, "goes_on")
        self._tell()

    def _grown(self, *_: Any) -> None:
        if self._told is not None:
            self.pane.object, self._told = self._told, None
        elif perf_counter() >= self._due and not self._reads:
            self._reads = True
            Thread(target=self._read, daemon=True).start()  # the views go on meanwhile

    def _read(self) -> None:
        begun = perf_counter()
        try:
            self._told = figures_table(rows(self.run.log))
        finally:
            self._due = begun + max(PAUSE, SHARE * (perf_counter() - begun))
            self._reads = False

    def _tell(self, *_: Any) -> None:
        self._told = None
        self.pane.object = figures_table(rows(self.run.log))


EMPTY = (
    "<p class='faint'>No run is open. Open a .run file above, save one from a study page, or make "
    "one: <code>workbench run batchllm --save first.run</code></p>"
)
