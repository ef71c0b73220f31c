"""The runs page: open a recorded run, watch it again, save and export it."""

import tempfile
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.core.run import Run
from widgets.export.downloads import downloads
from widgets.stage.stage import Stage
from workbench.pages.shelf import Shelf
from workbench.pages.shell import Shell, asked, figures_table, html
from workbench.pages.suggested_views import suggested_views
from workbench.summary import rows
from workbench.trace_in import SUFFIXES, open_log

UPLOAD = 256 << 20  # bytes of an opened file, at most
PAUSE = 1.0  # seconds between figures of a run that goes on
SHARE = 20  # and at least so many times as long as they take


class RunsPage:
    """A select of the open runs, a way to open more, and the chosen one's views."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.shell = shelf, Shell(asked("name") or "Runs", "runs")
        self.fault = html("", margin=(8, 0))
        wanted = self._asked()
        self.choice = pmui.Select(label="Run", options=list(shelf.runs), size="small", width=420)
        self.upload = pmui.FileInput(
            accept=".run,.json,.gz", label="Open a run or a trace", margin=(10, 16)
        )
        self.place = pn.Column(sizing_mode="stretch_width", margin=(16, 0))
        self.stage: Stage | None = None
        self.shell.on_dark(lambda on: self.stage.dark(on) if self.stage is not None else None)
        self.choice.param.update(value=wanted, visible=bool(shelf.runs))
        self.upload.param.watch(self._opened, "value")
        self.choice.param.watch(self.show, "value")
        self.show()

    def _asked(self) -> str | None:
        """The run the address asks for, else the newest. Raises BadInput for a bad run file."""
        if asked("file"):
            return self.shelf.file(asked("file"))
        if asked("name"):
            return self.shelf.named(asked("name"))
        return next(reversed(self.shelf.runs), None)

    def show(self, *_: Any) -> None:
        """Lay out the chosen run."""
        if self.stage is not None:
            self.stage.stop()
            self.stage = None
        if not self.choice.value:
            self.place.objects = [html(EMPTY)]
            return
        run = self.shelf.get(self.choice.value)
        self.stage = Stage(suggested_views(run.log))
        self.stage.dark(self.shell.dark)
        self.stage.open(run)
        self.place.objects = [
            self._downloads(run, self.choice.value.removesuffix(".run")),
            Figures(run, self.stage).pane,
            self.stage.__panel__(),
        ]
        self.stage.start()

    def _downloads(self, run: Run, title: str) -> Any:
        row = downloads(
            lambda: run.log, suggested_views(run.log), title=title, is_dark=lambda: self.shell.dark
        )
        self.shell.on_dark(row.dark)
        return row

    def _opened(self, event: Any) -> None:
        if not event.new:
            return
        try:
            name = self.shelf.keep(
                read_upload(event.new, self.upload.filename or "opened.run"),
                self.upload.filename or "opened.run",
            )
        except BadInput as wrong:
            self.fault.object = f'<p style="color:var(--wb-wrong)">{escape(str(wrong))}</p>'
            return
        self.fault.object = ""
        self.choice.param.update(options=list(self.shelf.runs), visible=True)
        self.choice.value = name

    def page(self) -> Any:
        head = html(
            "<h1>Runs</h1><p class='faint'>A recorded run is a run: play, scrub, export.</p>"
        )
        self.shell.page.param.update(main_width=1560, app_bar_width="100%")
        controls = pn.Row(self.choice, self.upload, margin=(16, 0, 0, 0))
        self.shell.page.main = [
            pn.Column(
                head, controls, self.fault, self.place, sizing_mode="stretch_width", margin=(28, 40)
            )
        ]
        return self.shell.page


class Figures:
    """The table of a run's figures, told anew while the run goes on."""

    def __init__(self, run: Run, stage: Stage) -> None:
        self.run, self._due = run, 0.0
        self.pane = html("", margin=(0, 0, 20, 0))
        stage.cursor.param.watch(self._grown, "duration")
        stage.param.watch(self._tell, "goes_on")
        self._tell()

    def _grown(self, *_: Any) -> None:
        if perf_counter() >= self._due:
            self._tell()

    def _tell(self, *_: Any) -> None:
        begun = perf_counter()
        self.pane.object = figures_table(rows(self.run.log))
        self._due = begun + max(PAUSE, SHARE * (perf_counter() - begun))


EMPTY = (
    "<p class='faint'>No run is open. Open a .run file above, save one from a study page, or make "
    "one: <code>workbench run batchllm --save first.run</code></p>"
)


def read_upload(data: bytes, name: str) -> Run:
    """The run in an uploaded file, told apart by its name. Raises BadInput."""
    if len(data) > UPLOAD:
        raise BadInput(f"run file: {len(data)} bytes; at most {UPLOAD} can be opened here")
    with tempfile.TemporaryDirectory() as folder:
        suffix = next((s for s in SUFFIXES if name.lower().endswith(s)), ".run")
        path = Path(folder) / f"opened{suffix}"
        path.write_bytes(data)
        try:
            return Run(open_log(path))
        except BadInput as fault:  # of the file as the person knows it
            raise BadInput(str(fault).replace(str(path), name).replace(path.name, name)) from None
