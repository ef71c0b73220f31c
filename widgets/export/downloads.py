"""A run's downloads on a page: run file, trace for Perfetto, page that replays."""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import param

from engine.core.chrome.write import chrome_trace
from engine.core.file import save
from engine.core.log import Log
from widgets.export.export import page
from widgets.knobs.knobs import colours
from widgets.page.bundle import bundle
from widgets.page.component import Component

File = tuple[str, str, Callable[[], bytes]]  # words of its button, name, what makes it


def run_file(log: Log) -> bytes:
    """The log as the bytes of a `.run` file."""
    with tempfile.TemporaryDirectory() as folder:
        return save(log, Path(folder) / "a.run").read_bytes()


def trace(log: Log) -> bytes:
    """The log as a Chrome trace, which Perfetto opens."""
    return json.dumps(chrome_trace(log)).encode()


class Downloads(Component):
    """The buttons in the browser. `wanted` says which was pressed; `made` is its file."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    names = param.List(default=[])
    wanted = param.Dict(default={})
    made = param.Dict(default={})
    is_dark = param.Boolean(default=False)
    options = param.Dict(default={})

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.is_dark = on


def downloads(
    log: Callable[[], Log], names: Sequence[str], *, title: str = "run", is_dark: Callable[[], bool]
) -> Downloads:
    """A row of buttons; each file is made when it is asked for, from the log as it is then."""

    def replaying() -> bytes:
        return page(log(), names, title=title, dark=is_dark()).encode()

    files: list[File] = [
        ("Page that replays", f"{title}.html", replaying),
        ("Run file", f"{title}.run", lambda: run_file(log())),
        ("Chrome trace", f"{title}.trace.json", lambda: trace(log())),
    ]
    row = Downloads(
        names=[words for words, _, _ in files], options=colours(), is_dark=is_dark(), margin=0,
        sizing_mode="stretch_width",
    )  # fmt: skip
    row.param.watch(lambda event: _send(row, files, event.new), "wanted")
    return row


def _send(row: Downloads, files: Sequence[File], wanted: dict[str, Any]) -> None:
    """Make the file that was asked for and send it; anything else is ignored."""
    place = wanted.get("place")
    if isinstance(place, int) and 0 <= place < len(files):
        _, name, make = files[place]
        row.made = {"name": name, "place": place, "data": make()}
        row.made = {}  # the page keeps no copy
