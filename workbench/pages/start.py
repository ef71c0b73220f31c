"""The start page: four doors for what a person brings, what can be tried, and the last runs."""

from html import escape
from typing import Any

import panel as pn

from widgets.theme import figure
from workbench.pages.doors.claim import ClaimDoor
from workbench.pages.doors.cluster import ClusterDoor
from workbench.pages.doors.door import CSS as DOOR
from workbench.pages.doors.door import ROW
from workbench.pages.doors.model import ModelDoor
from workbench.pages.doors.trace import TraceDoor
from workbench.pages.frame.shell import Shell, address, html
from workbench.pages.shelf.runs_table import title
from workbench.pages.shelf.shelf import Shelf, study_of
from workbench.pages.thumbnails import CSS as THUMBNAIL
from workbench.pages.thumbnails import thumbnail

ROWS = 5  # runs shown
TRIES = (
    ("study", {"slug": "hogwild"}, "Workers in one cache", "Threads that think together, each "
     "reading what the others write."),
    ("study", {"slug": "megatron"}, "A pipeline's bubble", "Schedules of 1F1B and zero bubble, "
     "pass by pass, on 1,536 devices."),
    ("study", {"slug": "batchllm"}, "A prefix computed once", "Requests that begin alike, and the "
     "pages they share."),
    ("study", {"slug": "flover"}, "Requests in one batch", "Who waits, who is computed, and when "
     "the first word comes."),
    ("study", {"slug": "streaming-diloco"}, "Training over a thin wire", "The same loss for a "
     "hundredth of the bytes?"),
    ("study", {"slug": "flash-attention-2"}, "Attention in tiles", "Who computes which rows, and "
     "how long workers wait."),
    ("roofline", {}, "What bounds this machine", "Its roofs, measured, and how near each operator "
     "comes."),
    ("catalogue", {}, "All 157 systems", "What stands, what is checked, and what came out."),
)  # fmt: skip
CSS = (
    DOOR
    + THUMBNAIL
    + """
.tries { display: grid; gap: 12px; grid-template-columns: repeat(4, 1fr); align-items: start; }
@media (max-width: 1100px) { .tries { grid-template-columns: repeat(2, 1fr); } }
.tries a { display: block; color: inherit; border: 1px solid var(--wb-line); border-radius: 10px;
  padding: 12px 14px; }
.tries a:hover { border-color: var(--wb-accent); text-decoration: none; }
.tries b { color: var(--wb-ink); font-weight: 600; } .tries span { color: var(--wb-faint);
  font-size: 14px; display: block; margin-top: 2px; }
"""
)


class StartPage:
    """Four doors, six places to try, the runs kept last."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.shell = shelf, Shell("Start", "")
        self.model, self.trace = ModelDoor(), TraceDoor(shelf)
        self.cluster, self.claim = ClusterDoor(), ClaimDoor()
        self.doors = (self.model, self.trace, self.cluster, self.claim)
        self.tries, self.runs = html("", CSS), html("", CSS)
        self.trace.read.param.watch(lambda _: self._list(), "object")  # a run may have come
        self.shell.on_dark(lambda _: self._paint())

    def _paint(self) -> None:
        """The addresses of all doors and what is said beneath them."""
        dark = self.shell.dark
        for each in self.doors:
            each.paint(dark)
        self.tries.object = "".join(("<div class='tries'>", *(
            f'<a href="{escape(address(where, dark, **query))}">'
            f"{thumbnail(query.get('slug', ''), dark)}<b>{escape(title)}</b>"
            f"<span>{escape(line)}</span></a>" for where, query, title, line in TRIES
        ), "</div>"))  # fmt: skip
        self._list()

    def _list(self) -> None:
        self.runs.object = self._last_runs(self.shell.dark)

    def _last_runs(self, dark: bool) -> str:
        rows = [
            f'<li><a href="{escape(address("runs", dark, name=name))}">{escape(name)}</a> '
            f"<span>{escape(title(study_of(run)))} · {figure(run.log.duration, 's')}</span></li>"
            for name, run in list(reversed(self.shelf.runs.items()))[:ROWS]
        ]
        return f"<h2>Your last runs</h2><ul>{''.join(rows)}</ul>" if rows else ""

    def page(self) -> Any:
        live = escape(address("live", self.shell.dark))
        cards = [each.card for each in self.doors]
        head = html(
            "<h1>See what a parallel LLM system does, while it does it</h1><p class='faint'>Start "
            f'from what you have, or <a href="{live}">watch a model decode on this machine</a>.</p>'
        )
        self.shell.page.param.update(main_width=1560, app_bar_width="100%")
        self.shell.page.main = [
            pn.Column(
                head,
                pn.Column(*cards, sizing_mode="stretch_width", stylesheets=[ROW], margin=(18, 0)),
                html("<h2>Try</h2>", margin=(8, 0, 8, 0)),
                self.tries,
                pn.Column(self.runs, margin=(22, 0), sizing_mode="stretch_width"),
                sizing_mode="stretch_width",
                margin=(28, 40),
            )
        ]
        return self.shell.page
