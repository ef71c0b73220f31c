"""The runs page: open a recorded run, watch it again, save and export it."""

import io
import json
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.core.file import save
from engine.core.log import Log
from engine.core.run import Run
from engine.core.trace import chrome_trace
from widgets.host import Stage
from workbench.pages_shell import Shell, asked, figures_table, html
from workbench.shelf import Shelf
from workbench.summary import rows
from workbench.views_of import views_of

UPLOAD = 256 << 20  # bytes of an opened file, at most


def run_bytes(log: Log) -> io.BytesIO:
    """The log as a run file in memory."""
    with tempfile.TemporaryDirectory() as folder:
        return io.BytesIO(save(log, Path(folder) / "saved.run").read_bytes())


def trace_bytes(log: Log) -> io.BytesIO:
    """The log as a Chrome trace in memory."""
    return io.BytesIO(json.dumps(chrome_trace(log)).encode())


def downloads(run: Run, name: str) -> list[Any]:
    """Buttons that save the run, its trace and a page that replays it without a server."""
    stem = "".join(c if c.isalnum() or c in "-_." else "-" for c in name.removesuffix(".run"))
    kinds = [
        ("Save run", f"{stem}.run", run_bytes),
        ("Trace (Perfetto)", f"{stem}.trace.json", trace_bytes),
        ("Replay page", f"{stem}.html", _replay_bytes),
    ]
    return [
        pmui.FileDownload(
            callback=lambda make=make: make(run.log), filename=file, label=label, size="small",
            variant="outlined", margin=(0, 8, 0, 0),
        )
        for label, file, make in kinds
    ]  # fmt: skip


def _replay_bytes(log: Log) -> io.BytesIO:
    from widgets.export import replay_page

    return io.BytesIO(replay_page(log, views_of(log)).encode())


def runs_page(shelf: Shelf) -> Any:
    """The page, for one person."""
    shell = Shell("Runs", "runs")
    fault = html("", margin=(8, 0))
    choice = pmui.Select(label="Run", options=list(shelf.runs), size="small", width=420)
    upload = pmui.FileInput(accept=".run", label="Open a .run file", multiple=False, margin=(0, 12))
    place = pn.Column(sizing_mode="stretch_width", margin=(16, 0))

    def show(*_: Any) -> None:
        if not choice.value:
            place.objects = [html(EMPTY)]
            return
        run = shelf.get(choice.value)
        stage = Stage(views_of(run.log))
        shell.on_dark(stage.dark)
        stage.open(run)
        place.objects = [
            pn.Row(*downloads(run, choice.value), margin=(0, 0, 12, 0)),
            html(figures_table(rows(run.log))),
            pn.pane.panel(stage) if not hasattr(stage, "__panel__") else stage.__panel__(),
        ]
        stage.start()

    def opened(event: Any) -> None:
        if not event.new:
            return
        try:
            name = shelf.keep(_read(event.new), upload.filename or "opened.run")
        except BadInput as wrong:
            fault.object = f'<p style="color:var(--wb-wrong)">{escape(str(wrong))}</p>'
            return
        fault.object = ""
        choice.param.update(options=list(shelf.runs), value=name)

    upload.param.watch(opened, "value")
    choice.param.watch(show, "value")
    wanted = asked("file")
    if wanted:
        names = {str(run.path): name for name, run in shelf.runs.items()}
        choice.value = names.get(wanted, choice.value)
    if not choice.value and shelf.runs:
        choice.value = next(reversed(shelf.runs))
    show()
    head = html("<h1>Runs</h1><p class='faint'>A recorded run is a run: play, scrub, export.</p>")
    shell.page.main_width, shell.page.app_bar_width = 1560, "100%"
    controls = pn.Row(choice, upload, align="center", margin=(16, 0, 0, 0))
    shell.page.main = [
        pn.Column(head, controls, fault, place, sizing_mode="stretch_width", margin=(28, 40))
    ]
    return shell.page


EMPTY = (
    "<p class='faint'>No run is open. Open a .run file above, save one from a study page, or make "
    "one: <code>workbench run batchllm --save first.run</code></p>"
)


def _read(data: bytes) -> Run:
    if len(data) > UPLOAD:
        raise BadInput(f"run file: {len(data)} bytes; at most {UPLOAD} can be opened here")
    from engine.core.file import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "opened.run"
        path.write_bytes(data)
        return Run(load(path))
