"""The control panel of a Config: controls by group, policies with their own knobs beneath them.

In goes a frozen Config, out comes a new one for every valid turn, through one callback. A
combination that does not fit is answered in one line.
"""

import html
import random
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import panel as pn
import panel_material_ui as material

from engine.core.config import Config, Knob, knobs, update
from engine.core.errors import BadInput
from widgets import theme
from widgets.config_text import as_cli, as_python
from widgets.controls import Control
from widgets.copy_text import CopyText
from widgets.together import together

DEBOUNCE = 60  # milliseconds: turns closer together become one config
TRIES = 30  # random settings tried until one is valid
FOLD = {
    "& .MuiAccordionSummary-root": {"minHeight": "36px", "padding": "0 4px"},
    "& .MuiAccordionSummary-content": {"margin": "6px 0"},
    "& .MuiAccordionSummary-content *": {"fontSize": "14px", "fontWeight": 600},
    "& .MuiAccordionDetails-root": {"padding": "0 4px 8px"},
    "& .MuiPaper-root": {"background": "transparent", "boxShadow": "none"},
}
NEAR = 8.0  # chance stays within this factor where a range is wider
INDENT = 14  # pixels, for the knobs that lie beneath a policy


class Knobs:
    """Controls for `config`; `tell` gets every new valid one. `slug`: the study, for the CLI.

    `keep`: choices that chance leaves alone, such as where requests come from. `start`: what reset
    goes back to and the copied command line starts from, where that is not `config`.
    """

    def __init__(
        self,
        config: Config,
        tell: Callable[[Config], None],
        *,
        slug: str = "SLUG",
        keep: Sequence[str] = ("executor", "workload"),
        start: Config | None = None,
    ) -> None:
        self.keep = tuple(keep)
        self.start, self.config, self.tell, self.slug = start or config, config, tell, slug
        self.message = ""
        self.is_dark = False
        self._edits: dict[str, Any] = {}  # turned, but not part of a valid config yet
        self._waiting = False
        self._applied = 0.0  # perf_counter
        self._controls: dict[tuple[Any, ...], Control] = {}
        self._folds: dict[str, Any] = {}
        self._rows = pn.Column(sizing_mode="stretch_width", margin=0)
        self._says = pn.pane.HTML("", visible=False, sizing_mode="stretch_width", margin=(6, 0))
        self._cli, self._python = CopyText(label="Copy as CLI"), CopyText(label="Copy as Python")
        reset = _button("Reset", "restart_alt", self.reset)
        randomise = _button("Randomise", "shuffle", self.randomise)
        self.panel = pn.Column(
            self._rows,
            self._says,
            pn.Row(reset, randomise, margin=(10, 0, 4, 0)),
            pn.Row(self._cli, self._python, margin=0, styles={"gap": "8px"}),
            sizing_mode="stretch_width",
            margin=0,
        )
        self._lay_out()

    def turn(self, path: str, value: Any) -> None:
        """A person turned a knob: soon a new config, or a line that says why not."""
        self._edits[path] = value
        document = pn.state.curdoc
        paged = document is not None and document.session_context is not None
        if not paged or perf_counter() - self._applied > DEBOUNCE / 1000:
            self.apply()  # the first turn at once
        elif not self._waiting:
            self._waiting = True
            document.add_timeout_callback(self.apply, DEBOUNCE)

    def apply(self) -> None:
        """Make a config of what was turned; what does not fit yet is kept for the next turn."""
        self._waiting, self._applied = False, perf_counter()
        edits = {path: value for path, value in self._edits.items() if self._has(path)}
        try:
            config = update(self.config, edits)
        except BadInput as fault:
            self._say(str(fault))
            return
        self._edits = {}
        self.set(config, tell=True)

    def _has(self, path: str) -> bool:
        """Whether a turned knob still exists: its policy may have been exchanged meanwhile."""
        parents = [k.path for k in knobs(self.config) if k.type == "choice"]
        mine = [p for p in parents if path.startswith(f"{p}.")]
        return not any(p in self._edits for p in mine)

    def set(self, config: Config, *, tell: bool = False) -> None:
        """Show `config`, from a preset or an address; `tell` passes it on."""
        changed, self.config = config != self.config, config
        self._edits = {}
        with together():
            self._say("")
            self._lay_out()
            if tell and changed:
                self.tell(config)

    def reset(self) -> None:
        """Back to the config it began with."""
        self.set(self.start, tell=True)

    def randomise(self, dice: random.Random | None = None) -> None:
        """A valid config by chance: other policies, numbers near where they started."""
        dice = dice or random.Random()
        for _ in range(TRIES):
            try:
                # Choices first: another policy brings other knobs.
                choices = [k for k in knobs(self.start) if k.type == "choice"]
                kept = [k for k in choices if k.path not in self.keep]
                config = update(self.start, {k.path: dice.choice(k.choices) for k in kept})
                drawn = {k.path: _by_chance(k, dice) for k in knobs(config)}
                config = update(config, {k: v for k, v in drawn.items() if v is not None})
            except BadInput:
                continue
            self.set(config, tell=True)
            return
        self._say("No valid setting found by chance: turn the knobs one at a time.")

    def _say(self, message: str) -> None:
        self.message = message
        colour = theme.wrong(self.is_dark)
        shown = (
            f'<p style="margin:0;font:13px {theme.FONT};color:{colour}">{html.escape(message)}</p>'
        )
        self._says.param.update(object=shown, visible=bool(message))

    def _lay_out(self) -> None:
        """Controls for the knobs there are now: old ones stay, rows move only where they must."""
        now = knobs(self.config)
        groups: dict[str, list[Knob]] = {"": []}
        for knob in now:
            groups.setdefault(_group(self.config, knob, now), []).append(knob)
        rows = [self._row(knob, now) for knob in groups.pop("")]
        for group, inside in groups.items():
            if group not in self._folds:
                self._folds[group] = _fold(group, self._lay_out)
            fold = self._folds[group]
            rows.append(fold)
            if fold.active:  # what nobody looks at costs the browser nothing
                panels = [self._row(knob, now) for knob in inside]
                if [id(panel) for panel in fold[0]] != [id(panel) for panel in panels]:
                    fold[0].objects = panels
        if [id(row) for row in rows] != [id(row) for row in self._rows]:
            self._rows.objects = rows
        self._cli.text = as_cli(self.config, self.slug, self.start)
        self._python.text = as_python(self.config)

    def _row(self, knob: Knob, among: list[Knob]) -> Any:
        """A knob's control, indented under its policies."""
        panel = self._control(knob).panel
        styles = {"paddingLeft": f"{INDENT * _depth(knob, among)}px"}
        if panel.styles != styles:
            panel.styles = styles
        return panel

    def _control(self, knob: Knob) -> Control:
        """The control of a knob, kept for as long as it is the same knob but for its value."""
        key = (knob.path, knob.type, knob.low, knob.high, knob.choices, knob.doc)
        key = (*key, knob.value is None)
        if key not in self._controls:
            self._controls[key] = Control(knob, self.turn)
        control = self._controls[key]
        control.set(str(knob.value) if knob.type == "choice" else knob.value)
        return control

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.is_dark = on
        self._cli.dark(on)
        self._python.dark(on)
        self._say(self.message)

    def __panel__(self) -> Any:
        return self.panel


def _depth(knob: Knob, among: list[Knob]) -> int:
    """Under how many policies a knob lies."""
    parents = {k.path for k in among if k.type == "choice"}
    parts = knob.path.split(".")
    return sum(".".join(parts[:i]) in parents for i in range(1, len(parts)))


def _group(config: Config, knob: Knob, among: list[Knob]) -> str:
    """The fold a knob belongs to: its own, else that of the field it lies under.

    The knobs of a plain nested config that names no fold are folded under its own name.
    """
    root = knob.path.split(".")[0]
    if knob.group or root == knob.path:
        return knob.group
    extra = type(config).model_fields[root].json_schema_extra
    group = str(extra.get("group", "")) if isinstance(extra, dict) else ""
    return group or ("" if any(k.path == root for k in among) else root.replace("_", " "))


def _button(text: str, icon: str, act: Callable[[], None]) -> Any:
    made = material.Button(
        label=text, icon=icon, variant="text", size="small", color="default", margin=(0, 6, 0, 0)
    )
    made.on_click(lambda event: act())
    return made


def _fold(group: str, opened: Callable[[], None]) -> Any:
    """A closed fold for a group's controls; `opened` is called when it is opened (or closed)."""
    inner = pn.Column(sizing_mode="stretch_width", margin=0)
    made = material.Accordion(
        (group[:1].upper() + group[1:], inner), sizing_mode="stretch_width", margin=(6, 0, 0, 0),
        elevation=0, sx=FOLD,
    )  # fmt: skip
    made.param.watch(lambda event: opened(), "active")
    return made


def _by_chance(knob: Knob, dice: random.Random) -> Any:
    """A value in a knob's bounds; None for a choice or where there are none."""
    if knob.type == "bool":
        return dice.random() < 0.5
    control_less = knob.type not in ("int", "float") or knob.value is None
    if control_less or knob.low is None or knob.high is None:
        return None
    low, high = float(knob.low), float(knob.high)
    if high - low > NEAR * max(abs(low), abs(knob.value), 1.0):
        value = knob.value * NEAR ** dice.uniform(
            -0.5, 0.5
        )  # the far ends of a wide range take ages
    else:
        value = dice.uniform(low, high)
    value = float(f"{value:.3g}")
    return round(min(max(value, low), high)) if knob.type == "int" else min(max(value, low), high)
