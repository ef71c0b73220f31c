"""The response page: any figure of a study over one knob or two, seeds as bands, as it comes."""

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import Config, knobs
from engine.core.errors import BadInput
from engine.core.names import counted
from widgets.knobs.controls import label
from widgets.stage.stage import every
from workbench.catalogue import entry, study
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, address, asked, asked_knobs, carry, html
from workbench.response.figure import curves, heat
from workbench.response.response import Response, knob_named, names, usual
from workbench.response.response import asked as sweep_of

PERIOD = 400  # milliseconds between looks at what has come
NONE = "none"
CURVES, HEAT = "curves", "heat map"
OWN = ("over", "values", "by", "lines", "seeds", "figure", "as")  # of the address
FIRST = (
    "<p class='faint'>Nothing is drawn yet: <i>Draw</i> runs it at each value, once for every seed."
    "</p>"
)
FIELD: dict[str, Any] = {"size": "small", "margin": (4, 10, 4, 0)}


class ResponsePage:
    """A form, how far the runs are, and the picture. `?slug=` names the study, the rest of the
    address its knobs. Raises BadInput for no such study or knob."""

    def __init__(self) -> None:
        if not asked("slug"):
            raise BadInput("response: no study named; open it from a study's page")
        self.study = study(asked("slug"))
        given = {name: value for name, value in asked_knobs().items() if name not in OWN}
        self.config: Config = config_of(self.study.configured({}, asked("preset")), given)
        self.shell = Shell("Response", "response")
        self.response = Response(self.study)
        self.paths = {f"{label(knob)} ({knob.path})": knob.path for knob in knobs(self.config)}
        first = asked("over") or self._telling()
        knob_named(self.config, first)
        self._fields(first)
        self.note = html(FIRST, margin=(6, 8), styles={"flex": "1 1 260px", "width": "auto"})
        self.picture = pn.pane.Bokeh(None, margin=0, visible=False)
        self._shown: Any = None
        self.shell.on_dark(lambda on: self._draw())

    def _telling(self) -> str:
        """The knob to begin with: the first number with a range of the paper's own."""
        known = knobs(self.config)
        numbers = [knob for knob in known if knob.type in ("int", "float") and knob.value]
        changed = [path for _, changes in self.study.tries for path in changes]
        told = [knob for knob in numbers if knob.path in changed]
        return (told or numbers or known)[0].path

    def _fields(self, first: str) -> None:
        told = {path: text for text, path in self.paths.items()}
        second = asked("by") if asked("by") in told else ""
        self.over = pmui.Select(label="Knob", options=list(self.paths), value=told[first],
                                width=330, **FIELD)  # fmt: skip
        self.values = pmui.TextInput(label="Values", width=240, **FIELD)
        self.by = pmui.Select(label="Second knob", options=[NONE, *self.paths],
                              value=told.get(second, NONE), width=330, **FIELD)  # fmt: skip
        self.lines = pmui.TextInput(label="Its values", width=240, **FIELD)
        self.seeds = pmui.TextInput(label="Seeds", value=asked("seeds") or "3", width=80, **FIELD)
        self.draw = pmui.Button(label="Draw", variant="contained", margin=(4, 8, 4, 0))
        self.stop = pmui.Button(label="Stop", variant="outlined", margin=(4, 8, 4, 0))
        self.figure = pmui.Select(label="Figure", options=[], width=330, visible=False, **FIELD)
        self.kind = pmui.Select(label="As", options=[CURVES, HEAT], width=130, visible=False,
                                **FIELD)  # fmt: skip
        self._suggest()
        if asked("values"):
            self.values.value = asked("values")
        if asked("lines"):
            self.lines.value = asked("lines")
        self.over.param.watch(lambda _: self._suggest(), "value")
        self.by.param.watch(lambda _: self._suggest(), "value")
        for field in (self.figure, self.kind):
            field.param.watch(lambda _: self._draw(), "value")
        self.draw.on_click(lambda _: self.ask())
        self.stop.on_click(lambda _: self.response.stop())

    def _suggest(self) -> None:
        """Values to begin with, wherever a knob has been chosen anew."""
        self.values.value = ", ".join(usual(knob_named(self.config, self.paths[self.over.value])))
        second = self.paths.get(self.by.value, "")
        self.lines.visible = bool(second)
        self.lines.value = ", ".join(usual(knob_named(self.config, second))) if second else ""

    def ask(self) -> None:
        """Run what the form says, and carry it in the address; or say in a line why not."""
        second = self.paths.get(self.by.value, "")
        over = self.paths[self.over.value]
        seeds = self.seeds.value.strip()
        try:
            if not (seeds.isascii() and seeds.isdigit() and len(seeds) < 4):
                raise BadInput(f"seeds {seeds[:20]!r}: give a number")
            sweep = sweep_of(self.config, over, self.values.value, second, self.lines.value)
            self.response.ask(self.config, sweep, int(seeds))
        except BadInput as fault:
            self.note.object = f'<p style="color:var(--wb-wrong)">{escape(str(fault))}</p>'
            return
        self.figure.param.update(options=[], value=None, visible=False)
        is_map = bool(second) and len(sweep.series) > 2
        self.kind.param.update(value=HEAT if is_map else CURVES, visible=bool(second))
        self._address(over, second, seeds)

    def _address(self, over: str, second: str, seeds: str) -> None:
        mine = {"slug": self.study.slug, "over": over, "values": self.values.value}
        more = {"by": second, "lines": self.lines.value} if second else {}
        own = query_of(self.study.config, self.config)
        carry(self.shell.dark, **{**own, **mine, **more, "seeds": seeds})

    def look(self) -> None:
        """Show what has come since."""
        rows, run = self.response.rows, self.response.run
        now = (id(run), len(rows), run.state if run is not None else "")
        if run is None or now == self._shown:
            return
        self._shown = now
        known = names(rows)
        if known and list(self.figure.options) != known:
            kept = asked("figure") if self.figure.value is None else self.figure.value
            value = kept if kept in known else known[0]
            self.figure.param.update(options=known, value=value, visible=True)
        self.note.object = self._status()
        self._draw()

    def _status(self) -> str:
        run, rows = self.response.run, self.response.rows
        if run is None:
            return ""
        failed = [row for row in rows if row.failed]
        said = [f"{counted(len(rows) - len(failed), 'run')} done"]
        if run.state != "closed" and run.live is not None:
            progress = run.live.progress
            left = progress.left()
            said = [f"{len(rows)} of {progress.total:g} runs"]
            said += [f"about {left:.0f} s left"] if left is not None else []
        elif run.failure is not None:
            said.append(f"stopped: {run.failure}")
        if failed:
            where = f"{failed[0].value}{' and ' if failed[0].line else ''}{failed[0].line}"
            said.append(f"{counted(len(failed), 'run')} without figures; at {where}: "
                        f"{failed[0].failed}")  # fmt: skip
        return f"<p class='faint' role='status'>{escape(' · '.join(said))}</p>"

    def _draw(self) -> None:
        """The chosen figure of what there is."""
        sweep, name = self.response.sweep, self.figure.value
        if sweep is None or not name:
            self.picture.visible = False
            return
        second, dark = next(iter(next(iter(sweep.series.values()))), ""), self.shell.dark
        knob = str(sweep.over[0]) if sweep.over else ""
        words = {path: text for text, path in self.paths.items()}
        of = (self.response.rows, words.get(knob, knob), words.get(second, second), name)
        try:
            made = (
                heat(*of, dark=dark) if second and self.kind.value == HEAT
                else curves(*of, dark=dark, modelled=self._is_modelled())
            )  # fmt: skip
        except BadInput:
            self.picture.visible = False
            return
        self.picture.param.update(object=made, visible=True)

    def _is_modelled(self) -> bool:
        return any(
            knob.path == "executor" and knob.value == "modelled" for knob in knobs(self.config)
        )

    def page(self) -> Any:
        shell, row = self.shell, entry(self.study.slug)
        query = {"slug": self.study.slug, **query_of(self.study.config, self.config)}
        to = escape(address("study", shell.dark, **query))
        head = html(
            f"<h1>How does {escape(self.study.title or row.title)} respond?</h1>"
            "<p class='faint'>Its runs over one knob or two, under several seeds: the line is "
            "their mean, the band its 95% interval. All else stands as on "
            f"<a href='{to}' style='text-decoration: underline'>its page</a>.</p>"
        )
        shell.page.param.update(main_width=1560, app_bar_width="100%")
        rows = (
            (self.over, self.values, self.by, self.lines),
            (self.seeds, self.draw, self.stop, self.figure, self.kind, self.note),
        )
        boxes = [pn.FlexBox(*row, align_items="center", margin=(2, 0)) for row in rows]
        shell.page.main = [
            pn.Column(
                head, *boxes, self.picture, sizing_mode="stretch_width", margin=(10, 40)
            )  # fmt: skip
        ]
        pn.state.onload(lambda: every(PERIOD, self.look))
        pn.state.on_session_destroyed(lambda _: self.response.stop())
        if asked("values"):
            pn.state.onload(self.ask)
        return shell.page
