"""The serve page: a model under a load, here or on a described device, its lanes or roofline."""

from typing import Any, cast

import panel as pn

from engine.core.config import Config, update
from engine.core.run import Live
from engine.hardware.measure import measure
from engine.inference.config import InferenceConfig
from engine.inference.run import run, run_on
from widgets.knobs.knobs import Knobs
from workbench.catalogue import study
from workbench.pages.frame.addresses import config_of
from workbench.pages.frame.shell import asked_knobs
from workbench.pages.frame.visitors import person
from workbench.pages.session_page import SessionPage
from workbench.pages.shelf.shelf import Shelf
from workbench.session import Session

PLACE = "serve"
OF_STUDY = "flover"  # whose load is drawn until another one is turned to
SERVED = ("request_lanes", "page_map", "levels", "latency")
PROFILED = ("roofline", "request_lanes", "page_map", "levels")
HEAD = (
    "<h1>What happens when a model is served?</h1><p class='faint'>Requests arrive, wait, are "
    "computed and answered; every knob begins the run anew. Under <i>Profile every</i> the "
    "operations of its steps are timed and stand under the device's roofs.</p>"
)


def start() -> Config:
    """A load that is over in seconds, batched as engines do it today."""
    return update(study(OF_STUDY).config, {"batching": "decode_first"})


def serve(config: Config, live: Live) -> None:
    """The driver: where operations are timed here, this machine's roofs are measured first, and
    drawn also where others kept it so busy that they are not kept."""
    config = cast(InferenceConfig, config)
    if not (config.profile_every and config.executor.real):
        return run(config, live)
    found = measure(say=lambda text: live.report(f"measuring this machine: {text}", 0, 0))
    live.report(f"opening the model {config.model}", 0, 0)
    built = config.executor.build(config)
    built.executor.facts = built.executor.facts.under(found)
    return run_on(config, built, live)


class ServePage(SessionPage):
    """Knobs left, views in the middle."""

    def __init__(self, shelf: Shelf) -> None:
        session = Session(serve, start())
        session.config = config_of(session.start, asked_knobs())
        self.config = cast(InferenceConfig, session.config)
        self.knobs = Knobs(session, slug=OF_STUDY, start=study(OF_STUDY).config)
        super().__init__(
            f"{self.config.model} served", PLACE, session, session.start, shelf,
            PROFILED if self.config.profile_every else SERVED,
            [("Run again", session.begin)], "served",
        )  # fmt: skip

    def look(self) -> None:
        self.knobs.refresh()
        super().look()

    def page(self) -> Any:
        self.shelf.check_room(person())
        self.session.begin()
        self.look()
        knobs = pn.Column(self.knobs.panel, margin=(12, 16), sizing_mode="stretch_width")
        return self.laid_out(HEAD, knobs, self.knobs.dark)
