"""The compare page: runs under one cursor, what differs between them, and by how much."""

import asyncio
from functools import partial
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.core.run import Run
from widgets.stage.compare import LETTERS, Compare
from widgets.stage.interleaved import can_interleave
from workbench.catalogue import catalogue, study
from workbench.pages.frame.shell import Shell, asked, asked_all, html
from workbench.pages.schedulers import SchedulerForm
from workbench.pages.shelf.runs_table import RUNS
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.sizing.layout import in_a_line
from workbench.pages.suggested_views import suggested_views
from workbench.pages.trace_tables import of_two

EMPTY = (
    "<p class='faint'>Two runs or more are needed. Take a system or a trace above, keep runs from "
    "a study page, or open files on the Runs page.</p>"
)
WAYS = ("Run under run", "Lanes interleaved")
NONE = "Choose a system of the list first."
# Seconds. Panel collects what fields come to for 50 ms before it tells us; a press comes at once.
COLLECTED = 0.15


class ComparePage:
    """Two selects and a choice of more, what differs, and the views one under another."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.shell = shelf, Shell("Compare", "compare")
        names = list(shelf.runs)
        self.first = pmui.Select(label="Run A", options=names, size="small", width=300)
        self.second = pmui.Select(label="Run B", options=names, size="small", width=300)
        self.more = pmui.MultiChoice(
            label="More runs", options=[], width=300, max_items=len(LETTERS) - 2,
            visible=False, sx={"& .MuiChip-label": {"fontSize": 14}}, margin=(5, 10, 5, 0),
        )  # fmt: skip
        built = [entry for entry in catalogue() if entry.built]
        self.pairs = {e.title: e.slug for e in built if study(e.slug).presets}
        self.pair = pmui.AutocompleteInput(
            label="A system, with its idea and without", options=list(self.pairs),
            placeholder="type a name", min_characters=0, case_sensitive=False,
            search_strategy="includes", size="small", width=290, margin=(4, 4, 4, 0),
        )  # fmt: skip
        self.go = pmui.Button(label="Run both", variant="contained", margin=(4, 24, 4, 4))
        self.go.on_click(self._run_pair)
        self.schedulers = SchedulerForm(self._take)
        self.lanes = pmui.RadioButtonGroup(
            options=list(WAYS), value=WAYS[0], size="small", visible=False, width=290,
            margin=(4, 8),
        )  # fmt: skip
        self.place = pn.Column(sizing_mode="stretch_width", margin=(16, 0))
        self.compare: Compare | None = None
        newest: list[str | None] = [*names[-2:], None, None]
        marked = [name for name in reversed(asked_all(RUNS)) if name in names][: len(LETTERS)]
        if len(marked) < 2:
            marked = [asked(letter.lower()) for letter in LETTERS]
        for select, name, other in zip(self.selects, marked, newest, strict=False):
            select.value = name if name in names else other
            select.param.watch(self.show, "value")
        self._offer()
        wanted = dict.fromkeys(marked[2:])
        self.more.value = [name for name in wanted if name in self.more.options]
        self.more.param.watch(self.show, "value")
        self.lanes.param.watch(self.show, "value")
        self.shell.on_dark(lambda on: self.compare.dark(on) if self.compare is not None else None)
        self.show()

    @property
    def selects(self) -> tuple[Any, Any]:
        return self.first, self.second

    def _offer(self) -> None:
        """Runs besides the first two may be taken, too."""
        taken = [select.value for select in self.selects]
        others = [name for name in self.first.options if name not in taken]
        if others != self.more.options:
            kept = [name for name in self.more.value or [] if name in others]
            self.more.param.update(options=others, value=kept, visible=bool(others))

    def show(self, *_: Any) -> None:
        """Lay out the chosen runs."""
        self._offer()
        if self.compare is not None:
            self.compare.stage.stop()
            self.compare = None
        names = [select.value for select in self.selects]
        for select in self.selects:
            select.visible = len(select.options) > 1
        if None in names or names[0] == names[1]:
            self.lanes.visible = False
            self.place.objects = [html(EMPTY)]
            return
        names += self.more.value or []
        try:
            runs = [self.shelf.get(name) for name in names]
        except BadInput as gone:  # another page has dropped it
            self.lanes.visible = False
            self.place.objects = [html(f"<p>{escape(str(gone))}</p>")]
            return
        self.lanes.visible = fits = can_interleave([run.log for run in runs])
        as_lanes = fits and self.lanes.value == WAYS[1]
        served = pn.state.curdoc is not None
        views = suggested_views(runs[0].log)
        self.compare = made = Compare(runs, views, names, as_lanes, at_once=not served)
        made.dark(self.shell.dark)
        if served:
            pn.state.execute(partial(_read, made))
        traced = of_two(runs[0].log, runs[1].log)
        self.place.objects = [*filter(None, [traced]), made.__panel__()]
        made.start()

    async def _run_pair(self, _: Any) -> None:
        """Run a study with its idea and without; show the two."""
        await asyncio.sleep(COLLECTED)
        slug = self.pairs.get(self.pair.value or "")
        if slug is None:
            self.place.objects = [html(f"<p>{escape(NONE)}</p>")]
            return
        self.go.loading = True
        try:
            runs = await asyncio.to_thread(both, slug)
        finally:
            self.go.loading = False
        self._take(runs)

    def _take(self, runs: list[tuple[str, Run]]) -> None:
        """Put two runs on the shelf and show them."""
        names = [self.shelf.keep(run, name) for name, run in runs]
        for select, name in zip(self.selects, names, strict=True):
            # At once: a list without a choice makes the browser take its first, some time later.
            select.param.update(options=list(self.shelf.runs), value=name)

    def page(self) -> Any:
        head = html("<h1>Compare</h1><p class='faint'>Runs on one axis: scrub one, all follow.</p>")
        self.shell.page.param.update(main_width=1800, app_bar_width="100%")
        body = pn.Column(
            head,
            pn.FlexBox(
                self.pair,
                self.go,
                self.first,
                self.second,
                self.more,
                self.lanes,
                align_items="center",
                margin=(14, 0),
            ),
            html("<h2>Two schedulers on one trace</h2>", margin=(6, 0, 2, 0)),
            self.schedulers.panel,
            self.place,
            sizing_mode="stretch_width",
            margin=(28, 40),
        )
        self.shell.page.main = [body]
        if asked("trace"):
            pn.state.onload(self.schedulers.run)
        return self.shell.page


async def _read(made: Compare) -> None:
    """Fill in what differs once it is known, beside the loop that serves every page."""
    try:
        await asyncio.to_thread(made.read)
    except Exception as fault:  # in a task nobody else hears of it: the page says so
        made.tell(in_a_line(fault))
    else:
        made.tell()


def both(slug: str) -> list[tuple[str, Run]]:
    """The study at its own setting and at its first preset, run to the end."""
    chosen = study(slug)
    preset = next(iter(chosen.presets))
    configs = {slug: chosen.config, f"{slug}: {preset}": chosen.configured({}, preset)}
    return [
        (name, Run.execute(chosen.driver, config, study=slug)) for name, config in configs.items()
    ]
