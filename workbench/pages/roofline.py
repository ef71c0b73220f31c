"""The roofline page: this machine's roofs, every kernel a point, and a described device beside."""

from functools import partial
from html import escape
from typing import Any, cast

import panel as pn
import panel_material_ui as pmui

from engine.core.config import Config, update
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.log import Log
from engine.core.run import Live
from engine.hardware import device, devices
from engine.hardware.measure import known
from engine.kernels.experiments.sweep import NONE, Sweep, run
from widgets.export.share import share
from widgets.knobs.knobs import Knobs
from widgets.stage.stage import Stage
from workbench.live.live import LiveEngine
from workbench.live.measure_while_paused import still
from workbench.pages.actions import actions, kept
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, asked_knobs, carry, html
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import views
from workbench.session import Session, changed

PLACE = "roofline"
LOOK = 0.05  # seconds between looks at what runs
TRIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Every kernel", {"operator": "all"}),
    ("Decode attention, long contexts", {"operator": "paged_attention", "operator.context": 16384}),
    ("One row is memory's, 512 arithmetic's", {"operator": "matmul", "operator.rows": 1}),
    ("A norm that stays in cache", {"operator": "norm", "operator.rows": 16, "inputs": "warm"}),
)
ABOUT = (
    "Each point is a kernel, run here and now: left of a ridge memory binds it, right of it "
    "arithmetic. Roofs are measured here while the live engine stands still (solid), or come from "
    "a data sheet (thin); hollow points are modelled on the device beside."
)


class RooflinePage:
    """Knobs left, the roofline in the middle."""

    def __init__(self, shelf: Shelf, engine: LiveEngine | None = None) -> None:
        self.engine = engine  # stands still while this machine is measured
        self.shelf, self.shell = shelf, Shell("Roofline", PLACE)
        self._refresh = False  # whether the next run measures the machine again
        self.session = Session(self._run, Sweep(), study=PLACE)
        asked = asked_config()
        self.session.config = asked
        self.knobs = Knobs(self.session, slug=PLACE, start=Sweep())
        self.stage = Stage(("roofline",))
        self.stage.watch(self.look, LOOK)
        self.beside = pmui.Select(
            label="Device beside", options=[NONE, *devices()], size="small",
            value=asked.beside or NONE, sizing_mode="stretch_width", margin=(4, 0, 10, 0),
        )  # fmt: skip
        self.fault = html("", visible=False, margin=(0, 0, 12, 0))
        tries = [(label, partial(self._try, changes)) for label, changes in TRIES]
        self.actions = actions(tries, [("Keep for comparing", self._keep)])
        self._shown: Any = None
        self.beside.param.watch(self._chosen, "value")

    def _run(self, config: Config, live: Live) -> None:
        refresh, self._refresh = self._refresh, False
        engine, before = self.engine.run if self.engine else None, known()
        try:
            run(cast(Sweep, config), live, refresh, still(engine))
        finally:
            if engine is not None and known() != before:
                engine.tell(do="roofs")  # the live page's are those measured here

    def _measure(self, _: Any) -> None:
        self._refresh = True
        self.session.begin()

    def _chosen(self, event: Any) -> None:
        if event.new and event.new != (self.session.config.beside or NONE):
            self.turn({"beside": event.new})

    def turn(self, changes: dict[str, Any]) -> None:
        """Set knobs from outside the control panel."""
        self._become(update(self.session.config, changes))

    def _become(self, config: Config) -> None:
        self.session.become(config)
        self.knobs.refresh()

    def _tell(self, config: Config) -> None:
        """Show what runs now beside the knobs and in the address."""
        wanted = getattr(config, "beside", "") or NONE
        if wanted in self.beside.options and self.beside.value != wanted:
            self.beside.value = wanted
        carry(self.shell.dark, **query_of(Sweep(), config))

    def look(self) -> None:
        """Follow the newest run and say what went wrong."""
        newest = self.session.run
        self.knobs.refresh()
        if newest is not self._shown:
            before, self._shown = self._shown, newest
            self.stage.open(newest)
            if before is not None and newest is not None:
                self._tell(newest.config)
        failure = newest.failure if newest is not None else None
        text = f'<p style="color:var(--wb-wrong)">{escape(str(failure))}</p>' if failure else ""
        text = text or doubt(newest.log if newest is not None else None)
        if self.fault.object != text:
            self.fault.param.update(object=text, visible=bool(text))

    def _keep(self) -> None:
        newest = self.session.run
        if newest is not None:
            differing = changed(Sweep(), self.session.config)
            words = ", ".join(f"{path}={after}" for path, (_, after) in differing.items())
            name = self.shelf.keep(newest, f"{PLACE}: {words}" if words else PLACE)
            self.actions.note = kept(self.shell.dark, name)

    def _try(self, changes: dict[str, Any]) -> None:
        self._become(update(Sweep(beside=self.session.config.beside), changes))

    def start(self) -> None:
        """Follow the run from now on, in the page this is called from."""
        self.stage.start()

    def close(self, *_: Any) -> None:
        self.session.close()

    def page(self) -> Any:
        if self.session.run is None:
            self.session.begin()
        self.look()
        self.shell.on_dark(self._dark)
        self.shell.page.param.update(sidebar_width=300)
        again = pmui.Button(label="Measure the roofs again", size="small", variant="text")
        again.on_click(self._measure)
        parts = self.beside, self.knobs.panel, again
        self.shell.page.sidebar = [pn.Column(*parts, margin=(12, 16), sizing_mode="stretch_width")]
        head = html(f"<h1>Roofline</h1><p>{ABOUT}</p>", margin=(0, 0, 12, 0))
        files = share(
            lambda: self.session.runs[-1].log, (PLACE,), title=PLACE,
            is_dark=lambda: self.shell.dark,
        )  # fmt: skip
        self.shell.on_dark(files.dark)
        self.shell.page.main = [
            pn.Column(
                head, self.actions, self.fault, *views(self.stage), files,
                sizing_mode="stretch_width", margin=(24, 28),
            )
        ]  # fmt: skip
        pn.state.onload(self.start)
        pn.state.on_session_destroyed(self.close)
        return self.shell.page

    def _dark(self, on: bool) -> None:
        self.stage.dark(on)
        self.knobs.dark(on)


def doubt(log: Log | None) -> str:
    """What to know before the picture is trusted, as escaped HTML; "" where roofs are sound."""
    marks = log.of(Mark) if log is not None else ()
    said = next((m.text for m in marks if (m.lane, m.name) == ("machine", "caution")), "")
    if not said:
        return ""
    words = f"{said[:1].upper()}{said[1:]}. Shares of a limit say little here."
    return f"<p class='doubt'><b>⚠ {escape(words)}</b></p>"


def asked_config() -> Sweep:
    """The sweep of the address. Raises BadInput for knobs that do not fit."""
    config = config_of(Sweep(), asked_knobs())
    if not isinstance(config, Sweep):
        raise BadInput("roofline: this address carries another page's knobs")
    if config.beside not in ("", NONE):
        device(config.beside)  # says which there are
    return config
