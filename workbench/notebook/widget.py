"""A study as ipywidgets: its knobs and its views, linked both ways with the session that runs it.

In comes a study with its session; out comes one box whose parts (`knobs`, `views`, `time`) can be
put anywhere and linked to other widgets. A knob turned here starts a run; one turned in code, or in
another view of the same session, moves the knob here.
"""

import threading
from contextlib import contextmanager
from html import escape
from typing import Any

import ipywidgets

from engine.core.config import Knob, knobs
from engine.core.errors import BadInput
from engine.core.run import Run
from widgets.knobs.controls import HUGE, label, spell
from widgets.stage.stage import Stage
from workbench.session import Session
from workbench.study import Study

LOOK = 0.1  # seconds between looks at the run
WIDE = {"description_width": "190px"}
STEPS = 1000  # of the time slider


def widget(study: Study, session: Session) -> "StudyWidget":
    """The study's widget, following its session from now on."""
    made = StudyWidget(study, session)
    made.follow()
    return made


class StudyWidget(ipywidgets.VBox):
    """`knobs`: widget by dotted path; `views`: widget by view; `time`: the cursor in seconds."""

    def __init__(self, study: Study, session: Session) -> None:
        self.session, self.stage = session, Stage(study.views)
        self.knobs: dict[str, ipywidgets.Widget] = {}
        self.says = ipywidgets.HTML()
        self.time = ipywidgets.FloatSlider(
            value=0.0, min=0.0, max=1.0, step=1e-3, description="time (s)", readout_format=".3g",
            layout={"width": "98%"},
        )  # fmt: skip
        self.views = {feed.view.name: feed.drawing.widget() for feed in self.stage.feeds}
        self._made: dict[tuple[Any, ...], ipywidgets.Widget] = {}
        self._silent, self._run, self._over = False, None, threading.Event()
        self._panel = ipywidgets.VBox()
        super().__init__([self._panel, self.says, *self.views.values(), self.time])
        self.time.observe(self._seeked, "value")
        self._lay_out()

    def follow(self) -> None:
        """Watch the session from a thread of its own, starting a run where there is none."""
        if self.session.run is None:
            self.session.begin()
        threading.Thread(target=self._follow, name="study widget", daemon=True).start()

    def close(self) -> None:
        """Stop watching; the browser's side goes too."""
        self._over.set()
        super().close()

    def look(self) -> None:
        """Bring everything up to the newest run; once, for whoever does not `follow`."""
        run = self.session.run
        if run is not self._run:
            self._open(run)
        self.stage.tick()
        cursor = self.stage.cursor
        with self._silently():
            self.time.max = max(cursor.duration, 1e-9)
            self.time.step = self.time.max / STEPS
            self.time.value = cursor.now

    def _follow(self) -> None:
        while not self._over.wait(LOOK):
            self.look()

    def _open(self, run: Run | None) -> None:
        self._run = run
        self.stage.open(run)
        self._lay_out()

    def _lay_out(self) -> None:
        """The knobs there are now; those that stay keep their widget."""
        now = knobs(self.session.config)
        with self._silently():
            self.knobs = {knob.path: self._control(knob) for knob in now}
        groups: dict[str, list[ipywidgets.Widget]] = {"": []}
        for knob in now:
            groups.setdefault(knob.group, []).append(self.knobs[knob.path])
        boxes = [ipywidgets.VBox(inside) for name, inside in groups.items() if name]
        folds = ipywidgets.Accordion(boxes, titles=[name for name in groups if name])
        self._panel.children = [*groups[""], *([folds] if boxes else [])]

    def _control(self, knob: Knob) -> ipywidgets.Widget:
        key = (knob.path, knob.type, knob.low, knob.high, knob.choices, knob.value is None)
        if key not in self._made:
            self._made[key] = made = control(knob)
            made.observe(lambda change, path=knob.path: self._turned(path, change.new), "value")
        known = self._made[key]
        value = _value(known, knob)
        if known.value != value:
            known.value = value
        return known

    def _turned(self, path: str, value: Any) -> None:
        """A person, or a linked widget, turned a knob."""
        if self._silent:
            return
        try:
            self.session.turn({path: None if value == "" else value})
        except BadInput as fault:
            self.says.value = f'<span style="color:#c62828">{escape(str(fault))}</span>'
            return
        self.says.value = ""
        self._lay_out()

    def _seeked(self, change: Any) -> None:
        if not self._silent:
            self.stage.cursor.seek(float(change.new))

    @contextmanager
    def _silently(self) -> Any:
        before, self._silent = self._silent, True
        try:
            yield
        finally:
            self._silent = before


def control(knob: Knob) -> ipywidgets.Widget:
    """The widget a knob is turned with: a slider where its range is one, else a field."""
    about = {
        "description": label(knob),
        "tooltip": knob.doc,
        "style": WIDE,
        "layout": {"width": "520px"},
    }
    if knob.type == "choice":
        return ipywidgets.Dropdown(options=list(knob.choices), value=str(knob.value), **about)
    if knob.type == "bool":
        return ipywidgets.Checkbox(value=bool(knob.value), indent=True, **about)
    bounded = knob.low is not None and knob.high is not None and knob.value is not None
    if knob.type == "str" or not bounded or float(knob.high) - float(knob.low) > HUGE:
        return ipywidgets.Text(value=spell(knob.value), continuous_update=False, **about)
    ends = {"min": knob.low, "max": knob.high, "value": knob.value, "continuous_update": False}
    if knob.type == "int":
        ends |= {"min": int(knob.low), "max": int(knob.high)}
        return ipywidgets.IntSlider(**ends, **about)
    step = (float(knob.high) - float(knob.low)) / 1000
    return ipywidgets.FloatSlider(**ends, step=step, readout_format=".4g", **about)


def _value(made: ipywidgets.Widget, knob: Knob) -> Any:
    """A knob's value as its widget holds it."""
    if isinstance(made, ipywidgets.Text):
        return spell(knob.value)
    return str(knob.value) if knob.type == "choice" else knob.value
