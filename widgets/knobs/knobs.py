"""The control panel of a Config: controls by group, policies with their own knobs beneath them.

A view of a config that somebody else owns: a turn asks the owner to become another, and what the
owner has become, by whomever, is shown. A combination that does not fit is answered in one line.
All controls are one component in the browser: a widget each would cost a page of forty knobs most
of its time.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import param

from engine.core.config import Config, Knob, knobs, update
from engine.core.errors import BadInput
from widgets import theme
from widgets.knobs.config_text import as_cli, as_python
from widgets.knobs.controls import Control
from widgets.page.batched_updates import batched_updates
from widgets.page.bundle import bundle
from widgets.page.component import Component

TRIES = 30  # random settings tried until one is valid
REST = "more knobs"  # the fold of all that do not stand in a row
FEW = 4  # knobs of a policy that stand with it on top
NEAR = 8.0  # chance stays within this factor where a range is wider


class KnobPanel(Component):
    """The panel in the browser. Knows nothing; `turned` says what a person did."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    layout = param.List(default=[])  # {group, knobs: facts of the controls in it}
    shown = param.Dict(default={})  # path -> {field, place} that the control stands at
    across = param.Boolean(default=False, doc="in a row, the first knobs; the rest folded")
    sought = param.String(default="", doc="the knob that a person came for")
    says = param.String(default="")
    cli = param.String(default="")
    python = param.String(default="")
    is_dark = param.Boolean(default=False)
    options = param.Dict(default={})
    turned = param.Dict(default={})


class Owner(Protocol):
    """Who owns the config that the knobs show, such as a session that runs it."""

    config: Config

    def become(self, config: Config) -> None:
        """Take another config, a valid one."""
        ...


class Knobs:
    """Controls for the config of `owner`. `slug`: the study or command, for the CLI.

    `first`: paths of knobs that stand on top, all others folded beneath; by default those without
    a group of their own stand open. `across`: in a row, not in a column. `names`: what may be typed
    into a knob of text, by the last part of its path. `keep`: choices that chance leaves alone,
    such as where requests come from. `start`: what reset goes back to and the copied command line
    starts from, where that is not the owner's config. `waits`: what a turn became is laid out once
    `refresh` is called, since what it runs is seen first.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        slug: str = "SLUG",
        keep: Sequence[str] = ("executor", "workload"),
        start: Config | None = None,
        python: Callable[[Config], str] = as_python,
        first: Sequence[str] = (),
        across: bool = False,
        names: Mapping[str, Sequence[str]] = MappingProxyType({}),
        waits: bool = False,
    ) -> None:
        self.first, self.across, self.names = tuple(first), across, names
        self.keep, self.waits = tuple(keep), waits
        self.owner, self.start, self.slug = owner, start or owner.config, slug
        self._python = python
        self._shown = owner.config
        self.message = ""
        self._edits: dict[str, Any] = {}  # turned, but not part of a valid config yet
        self._controls: dict[str, Control] = {}
        self.panel = KnobPanel(
            options=colours(), across=across, sizing_mode="stretch_width", margin=0
        )
        self.panel.param.watch(lambda event: self.heard(event.new), "turned")
        self._lay_out()

    def heard(self, turned: dict[str, Any]) -> None:
        """Do what a person asked for in the browser; anything else is ignored."""
        acts = {"reset": self.reset, "randomise": self.randomise}
        if turned.get("do") == "undo" and turned.get("path") in self._controls:
            self.undo(turned["path"])
        elif turned.get("do") in acts:
            acts[turned["do"]]()
        elif turned.get("path") in self._controls:
            path = turned["path"]
            self.turn(path, self._controls[path].read(turned))

    def turn(self, path: str, value: Any) -> None:
        """A person turned a knob: a new config, or a line that says why not. What does not fit yet
        is kept for the next turn."""
        self._edits[path] = value
        edits = {path: value for path, value in self._edits.items() if self._has(path)}
        try:
            config = update(self.owner.config, edits)
        except BadInput as fault:
            self._say(str(fault))
            return
        self._become(config)

    def _has(self, path: str) -> bool:
        """Whether a turned knob still exists: its policy may have been exchanged meanwhile."""
        parents = [k.path for k in knobs(self.owner.config) if k.type == "choice"]
        mine = [p for p in parents if path.startswith(f"{p}.")]
        return not any(p in self._edits for p in mine)

    def _become(self, config: Config) -> None:
        with batched_updates():
            self.owner.become(config)  # first: what is to be run can run meanwhile
            self._edits = {}
            if not self.waits:
                self._show()

    def refresh(self) -> None:
        """Show what the owner has become, where that is not shown yet."""
        if self.owner.config is not self._shown:
            with batched_updates():
                self._show()

    def _show(self) -> None:
        self._shown, self._edits = self.owner.config, {}
        self._say("")
        self._lay_out()

    def reset(self) -> None:
        """Back to the config it began with."""
        self._become(self.start)

    def undo(self, path: str) -> None:
        """One knob, and those within it, back to where they began."""
        began = {k.path: k.value for k in knobs(self.start)}
        mine = {p: v for p, v in began.items() if p == path or p.startswith(f"{path}.")}
        try:
            config = update(self.owner.config, mine)
        except BadInput as fault:
            self._say(str(fault))
            return
        self._become(config)

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
            self._become(config)
            return
        self._say("No valid setting found by chance: turn the knobs one at a time.")

    def _say(self, message: str) -> None:
        self.message = message
        if self.panel.says != message:
            self.panel.says = message

    def _lay_out(self) -> None:
        """The controls there are now and what they stand at; sent where it differs."""
        config = self._shown
        now = [knob for knob in knobs(config) if knob.path != "kind"]  # what it is, not a knob
        groups: dict[str, list[dict[str, Any]]] = {"": []}
        shown, places = {}, {}
        began = {knob.path: Control(knob) for knob in knobs(self.start)}
        self._controls = {knob.path: Control(knob) for knob in now}
        tops = self._tops(now)
        for knob in now:
            control = self._controls[knob.path]
            top = tops.get(knob.path, "")
            group = "" if top else self._fold_of(knob, _group(config, knob, now), now)
            facts = control.facts(0 if top == knob.path else _depth(knob, now))
            if knob.type == "str" and knob.path.split(".")[-1] in self.names:
                facts["names"] = list(self.names[knob.path.split(".")[-1]])
            places[knob.path] = self.first.index(top) if top else 0
            groups.setdefault(group[:1].upper() + group[1:], []).append(facts)
            shown[knob.path] = control.stands()
            at_first = began.get(knob.path)
            if at_first is not None and at_first.knob.value != knob.value:
                shown[knob.path]["was"] = str(at_first.stands()["field"])
        if self.first:
            groups[""].sort(key=lambda facts: places[facts["path"]])
        wanted = {
            "layout": [{"group": name, "knobs": facts} for name, facts in groups.items()],
            "shown": shown,
            "cli": as_cli(config, self.slug, self.start),
            "python": self._python(config),
        }
        changed = {k: v for k, v in wanted.items() if getattr(self.panel, k) != v}
        if changed:
            self.panel.param.update(**changed)

    def _tops(self, among: list[Knob]) -> dict[str, str]:
        """Which of the first knobs each stands with that does: itself, or a policy of few."""
        found = {path: path for path in self.first}
        for path in () if self.across else self.first:
            inside = [k for k in among if k.path.startswith(f"{path}.")]
            for knob in inside if len(inside) <= FEW else ():
                if not knob.group:
                    found.setdefault(knob.path, path)
        return found

    def _fold_of(self, knob: Knob, group: str, among: list[Knob]) -> str:
        """The fold of a knob that is not among the first ones: its group's, its policy's where that
        has many."""
        if not self.first or (group and not self.across):
            return group
        root = knob.path.split(".")[0]
        many = sum(k.path.startswith(f"{root}.") for k in among) > FEW
        return root.replace("_", " ") if many and not self.across else REST

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.panel.is_dark = on

    def __panel__(self) -> Any:
        return self.panel


def colours() -> dict[str, dict[str, str]]:
    """The neutrals, the accent, a fault's colour and the font of both themes."""
    return {
        name: {**asdict(theme.scheme(dark)), "hue": theme.hues(dark)[0],
               "wrong": theme.wrong(dark), "font": theme.FONT}
        for name, dark in (("light", False), ("dark", True))
    }  # fmt: skip


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
