"""A run's share menu on a page: what can be copied (its address, commands), and files to save."""

import csv
import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import param

from engine.core.chrome.write import chrome_trace
from engine.core.file import save
from engine.core.log import Log
from engine.core.writing import json_text
from widgets.export.export import page
from widgets.knobs.knobs import colours
from widgets.page.bundle import bundle
from widgets.page.component import Component
from widgets.stage.figures import measures

File = tuple[str, str, Callable[[], bytes]]  # words of its entry, name, what makes it
Text = tuple[str, Callable[[], str]]  # words of its entry, and what is copied as it is then


def run_file(log: Log) -> bytes:
    """The log as the bytes of a `.run` file."""
    with tempfile.TemporaryDirectory() as folder:
        return save(log, Path(folder) / "a.run").read_bytes()


def trace(log: Log) -> bytes:
    """The log as a Chrome trace, which Perfetto opens."""
    return json_text(chrome_trace(log)).encode()


def figures(log: Log) -> bytes:
    """The log's figures as CSV: figure, value, unit."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(("figure", "value", "unit"))
    rows.writerows((name, value, unit) for name, (value, unit) in measures(log).items())
    return out.getvalue().encode()


class ShareMenu(Component):
    """The menu in the browser. `opened` counts how often; `texts` are what may be copied, sent each
    time. `wanted` says which file was asked for; `made` is that file."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    copies = param.List(default=[])
    files = param.List(default=[])
    opened = param.Integer(default=0)
    texts = param.List(default=[])
    wanted = param.Dict(default={})
    made = param.Dict(default={})
    is_dark = param.Boolean(default=False)
    options = param.Dict(default={})

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.is_dark = on


def share(
    log: Callable[[], Log],
    names: Sequence[str],
    *,
    title: str = "run",
    is_dark: Callable[[], bool],
    texts: Sequence[Text] = (),
    files: Sequence[File] = (),
) -> ShareMenu:
    """A menu of `texts` to copy and of files, made when they are asked for, from the log as it is
    then: those of every run and `files`. A text that begins with "?" is a query of this page, and
    copied as its whole address."""

    def replaying() -> bytes:
        return page(log(), names, title=title, dark=is_dark()).encode()

    every: list[File] = [
        ("Page that replays", f"{title}.html", replaying),
        ("Run file", f"{title}.run", lambda: run_file(log())),
        ("Chrome trace", f"{title}.trace.json", lambda: trace(log())),
        ("Figures (CSV)", f"{title}.csv", lambda: figures(log())),
        *files,
    ]
    menu = ShareMenu(
        copies=[words for words, _ in texts], files=[words for words, _, _ in every],
        options=colours(), is_dark=is_dark(), margin=(0, 0, 4, 0),
    )  # fmt: skip
    menu.param.watch(lambda event: _tell(menu, texts), "opened")
    menu.param.watch(lambda event: _send(menu, every, event.new), "wanted")
    return menu


def _tell(menu: ShareMenu, texts: Sequence[Text]) -> None:
    menu.texts = [make() for _, make in texts]


def _send(menu: ShareMenu, files: Sequence[File], wanted: dict[str, Any]) -> None:
    """Make the file that was asked for and send it; anything else is ignored."""
    place = wanted.get("place")
    if isinstance(place, int) and 0 <= place < len(files):
        _, name, make = files[place]
        menu.made = {"name": name, "place": place, "data": make()}
        menu.made = {}  # the page keeps no copy
