"""A run's downloads on a page: run file, trace for Perfetto, page that replays, charts as SVG."""

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as material

from engine.core.file import save
from engine.core.log import Log
from engine.core.trace import chrome_trace
from widgets.charts import ChartDrawing
from widgets.export import chart, page
from widgets.view import view


def run_file(log: Log) -> bytes:
    """The log as the bytes of a `.run` file."""
    with tempfile.TemporaryDirectory() as folder:
        return save(log, Path(folder) / "a.run").read_bytes()


def trace(log: Log) -> bytes:
    """The log as a Chrome trace, which Perfetto opens."""
    return json.dumps(chrome_trace(log)).encode()


def downloads(
    log: Callable[[], Log], names: Sequence[str], *, title: str = "run", is_dark: Callable[[], bool]
) -> Any:
    """A fold of buttons; each file is made when it is asked for, from the log as it is then."""

    def replaying() -> bytes:
        return page(log(), names, title=title, dark=is_dark()).encode()

    files: list[tuple[str, str, Callable[[], bytes]]] = [
        ("Page that replays", f"{title}.html", replaying),
        ("Run file", f"{title}.run", lambda: run_file(log())),
        ("Chrome trace", f"{title}.trace.json", lambda: trace(log())),
    ]
    for name in names:
        if isinstance(view(name).draw(), ChartDrawing):
            words = name.replace("_", " ")
            files.append((f"SVG: {words}", f"{title}-{name}.svg", _svg(log, name, is_dark)))
    return pn.FlexBox(*(_button(*file) for file in files), styles={"gap": "6px"})


def _svg(log: Callable[[], Log], name: str, is_dark: Callable[[], bool]) -> Callable[[], bytes]:
    return lambda: chart(log(), name, dark=is_dark()).encode()


def _button(text: str, filename: str, make: Callable[[], bytes]) -> Any:
    return material.FileDownload(
        callback=lambda: io.BytesIO(make()), filename=filename, label=text, variant="text",
        size="small", color="default", margin=0,
    )  # fmt: skip
