"""The serve page: a model under a load, here or on a described device, its lanes or roofline."""

from html import escape
from typing import Any, cast
from urllib.parse import urlencode

import panel as pn

from engine.core.config import Config, update
from engine.core.run import Live
from engine.hardware.measure import measure
from engine.inference.config import InferenceConfig
from engine.inference.run import run
from widgets.export.share import share
from widgets.knobs.knobs import Knobs
from widgets.stage.stage import Stage
from workbench.catalogue import study
from workbench.pages.actions import actions, kept
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, asked_knobs, framed, html
from workbench.pages.frame.visitors import person
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import views
from workbench.session import Session, changed

PLACE = "serve"
OF_STUDY = "flover"  # whose load is drawn until another one is turned to
LOOK = 0.025  # seconds between looks at what runs
SERVED = ("request_lanes", "page_map", "levels", "latency")
PROFILED = ("roofline", "request_lanes", "page_map", "levels")
ABOUT = (
    "Requests arrive, wait, are computed and answered; every knob begins the run anew. Under "
    "<i>Profile every</i> the operations of its steps are timed and stand under the device's roofs."
)


def start() -> Config:
    """A load that is over in seconds, batched as engines do it today."""
    return update(study(OF_STUDY).config, {"batching": "decode_first"})


def serve(config: Config, live: Live) -> None:
    """The driver: where operations are timed here, this machine's roofs are measured first."""
    config = cast(InferenceConfig, config)
    if config.profile_every and config.executor.real:
        measure(say=lambda text: live.report(f"measuring this machine: {text}", 0, 0))
    run(config, live)


class ServePage:
    """Knobs left, views in the middle."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.start = shelf, start()
        self.session = Session(serve, self.start)
        self.session.config = config_of(self.start, asked_knobs())
        self.config = cast(InferenceConfig, self.session.config)
        self.shell = Shell(f"{self.config.model} served", PLACE)
        self.knobs = Knobs(self.session, slug=OF_STUDY, start=study(OF_STUDY).config)
        self.stage = Stage(PROFILED if self.config.profile_every else SERVED)
        self.stage.watch(self.look, LOOK)
        self.fault = html("", visible=False, margin=(0, 0, 12, 0))
        self.actions = actions([], [("Run again", self._again), ("Keep for comparing", self._keep)])
        self._shown: Any = None

    def _again(self) -> None:
        self.session.begin()

    def _keep(self) -> None:
        newest = self.session.run
        if newest is None or newest.failure is not None or not newest.log.events:
            self.actions.note = {"text": "nothing to keep: this run has no events"}
            return
        differing = changed(self.start, self.session.config)
        words = ", ".join(f"{path}={after}" for path, (_, after) in list(differing.items())[:2])
        self.shelf.keep(newest, f"served: {words}" if words else "served")
        self.actions.note = kept(self.shell.dark)

    def look(self) -> None:
        """Follow the newest run; say what went wrong."""
        newest = self.session.run
        self.session.tend()
        self.knobs.refresh()
        if newest is not self._shown:
            before, self._shown = self._shown, newest
            self.stage.open(newest)
            if before is not None and newest is not None:
                self._address(newest.config)
        failure = newest.failure if newest is not None else None
        text = str(failure) if failure is not None else self.session.said
        if self.fault.visible != bool(text):
            self.fault.param.update(object=_wrong(text), visible=bool(text))

    def _address(self, config: Config) -> None:
        location = pn.state.location
        if location is not None:
            theme = {"theme": "dark"} if self.shell.dark else {}
            location.search = "?" + urlencode({**query_of(self.start, config), **theme, **framed()})

    def _dark(self, on: bool) -> None:
        self.stage.dark(on)
        self.knobs.dark(on)

    def page(self) -> Any:
        shell = self.shell
        self.shelf.check_room(person())
        self.session.begin()
        self.look()
        shell.on_dark(self._dark)
        shell.page.param.update(sidebar_width=300)
        knobs = pn.Column(self.knobs.panel, margin=(12, 16), sizing_mode="stretch_width")
        shell.page.sidebar = [knobs]
        files = share(
            lambda: self.session.runs[-1].log, tuple(v.name for v in self.stage.views),
            title=PLACE, is_dark=lambda: shell.dark,
        )  # fmt: skip
        shell.on_dark(files.dark)
        head = html(
            f"<h1>What happens when a model is served?</h1><p class='faint'>{ABOUT}</p>",
            margin=(0, 0, 8, 0),
        )
        shell.page.main = [
            pn.Column(
                head, pn.Row(self.actions, files, sizing_mode="stretch_width"), self.fault,
                *views(self.stage), sizing_mode="stretch_width", margin=(12, 28),
            )
        ]  # fmt: skip
        pn.state.onload(self.stage.start)
        name = self.shelf.show(self.session, person())
        pn.state.on_session_destroyed(lambda _: self._gone(name))
        return shell.page

    def _gone(self, name: str) -> None:
        self.shelf.hide(name)
        self.session.close()


def _wrong(text: str) -> str:
    return f'<p style="color:var(--wb-wrong)">{escape(text)}</p>'
