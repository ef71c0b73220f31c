"""The web app: one server on loopback, a page for each place, one live engine under them all."""

import asyncio
import gc
import logging
from collections.abc import Callable
from typing import Any

import panel as pn
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from engine.models.loading.find import find
from workbench.api.access import Access, access
from workbench.api.connections import bounded
from workbench.api.drain import Stopping, on_signals
from workbench.api.gate import guard
from workbench.api.handlers import handlers
from workbench.api.server import HOST, address_of
from workbench.attention.page import asked_page
from workbench.attention.readings import Readings
from workbench.attention.routes import routes
from workbench.catalogue import catalogue
from workbench.live.live import LiveEngine
from workbench.pages.attached import AttachedPage
from workbench.pages.catalogue import catalogue_page
from workbench.pages.compare import ComparePage
from workbench.pages.embedded import EmbeddedPage
from workbench.pages.frame.files import HANDLERS, hasten
from workbench.pages.frame.queries import read_any
from workbench.pages.frame.received import check_messages
from workbench.pages.frame.shell import message_page
from workbench.pages.frame.unknown import say_so
from workbench.pages.frame.unsent import send_all
from workbench.pages.frame.visitors import greet
from workbench.pages.lecture import LecturePage
from workbench.pages.live import LivePage
from workbench.pages.replica import ReplicaPage
from workbench.pages.response import ResponsePage
from workbench.pages.roofline import RooflinePage
from workbench.pages.runs import RunsPage
from workbench.pages.serve import ServePage
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.sizing.design import DesignPage
from workbench.pages.sizing.plan import PlanPage
from workbench.pages.sizing.predict import PredictPage
from workbench.pages.start import StartPage
from workbench.pages.study import StudyPage, asked_study

Page = Callable[[], Any]
LOGS = ("asyncio", "tornado.application", "tornado.general", "bokeh.server.views.ws")


class TabsThatWent(logging.Filter):
    """Drops what is said of a tab that closed while something was sent to it."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        return not isinstance(fault, WebSocketClosedError | StreamClosedError)


def pages(live: LiveEngine, shelf: Shelf, readings: Readings) -> dict[str, Page]:
    """What is served at each place; a live engine not started yet starts with its first page."""

    def live_page() -> Any:
        if live.run is None:
            live.start()
        return LivePage(live, shelf).page()

    found: dict[str, Page] = {
        "/": lambda: StartPage(shelf).page(),
        "live": live_page,
        "catalogue": catalogue_page,
        "study": lambda: StudyPage(asked_study(), shelf).page(),
        "embed": lambda: EmbeddedPage(asked_study(across=True), shelf).page(),
        "lecture": lambda: LecturePage(asked_study(), shelf).page(),
        "plan": lambda: PlanPage().page(),
        "predict": lambda: PredictPage().page(),
        "design": lambda: DesignPage().page(),
        "serve": lambda: ServePage(shelf).page(),
        "replica": lambda: ReplicaPage(shelf).page(),
        "response": lambda: ResponsePage().page(),
        "attach": lambda: AttachedPage(shelf).page(),
        "attention": lambda: asked_page(shelf, live.run, readings).page(),
        "roofline": lambda: RooflinePage(shelf, live).page(),
        "compare": lambda: ComparePage(shelf).page(),
        "runs": lambda: RunsPage(shelf).page(),
        "run": lambda: RunsPage(shelf).page(),
    }
    return {place: _or_fault(page) for place, page in found.items()}


def _or_fault(page: Page) -> Page:
    """A page, or one line that says why there is none. (Panel serves functions only.)"""

    def shown() -> Any:
        try:
            return page()
        except BadInput as fault:
            return message_page("This page cannot be shown", str(fault))

    return shown


def serve(
    port: int,
    ready: Callable[[str], None],
    *,
    model: str = "stdlib-5m",
    runs: tuple[str, ...] = (),
    live: LiveEngine | None = None,
    host: str = HOST,
    rules: Access | None = None,
) -> None:
    """Serve the app until interrupted; `ready` is told its address once it answers.

    `runs`: run files to have on the shelf. `live`: an engine already started (then `model` is not
    read). `rules`: who may enter; by default whoever asks from this machine. The API answers on
    the same port. Raises BadInput for a bad model or run file, or a host that needs a token.
    """
    rules = rules or access(host, port)
    shelf = Shelf()
    for path in runs:
        shelf.open(path)
    live = live or LiveEngine(live_config(model), at_once=True).start()
    server = make_server(port, live, shelf, rules, address=host)
    try:
        server.io_loop.add_callback(ready, address_of(host, port))
        server.start()
        # What is imported by now stays: walks over it for garbage held pages up for 0.2 s each.
        gc.freeze()
        server.io_loop.add_callback(_until_stopped, server, live)
        server.io_loop.start()
    finally:
        live.close()
        server.stop()


async def _until_stopped(server: Any, live: LiveEngine) -> None:
    """Stop the loop once a signal asks for it and the API's open answers have had their time."""
    stopping = Stopping()
    on_signals(asyncio.get_running_loop(), stopping.told)
    await stopping.asked.wait()
    await stopping.drain(live)
    server.io_loop.stop()


def live_config(model: str) -> InferenceConfig:
    """The live page's engine: a cache small enough to see it fill, share and evict."""
    every = {"attention_every": 8 if _has_attention(model) else 0, "profile_every": 16}
    return InferenceConfig(model=model, pages=240, max_running=24, **every)


def _has_attention(model: str) -> bool:
    """Whether attention of the model can be sampled; of one that is not known the engine tells."""
    try:
        config = find(model).config
    except BadInput:
        return True
    return not any(config.recurrent) and config.index is None and config.streams is None


def make_server(
    port: int, live: LiveEngine, shelf: Shelf, rules: Access | None = None, **options: Any
) -> Any:
    """The server, not started, its gate closed to strangers.

    `options`: of `panel.serve`, in place of the app's own.
    """
    logging.getLogger("bokeh").setLevel(logging.WARNING)
    for name in LOGS:
        logging.getLogger(name).addFilter(TabsThatWent())
    pn.extension()
    hosts = (rules or access(HOST, port)).hosts
    readings = Readings()
    own = {
        "address": HOST,
        "port": port,
        # Bokeh's own check, behind the gate's; it knows no IPv6 addresses.
        "websocket_origin": sorted(host for host in hosts if "[" not in host),
        "extra_patterns": handlers(live),
        "show": False,
        "start": False,
        "verbose": False,
        "title": "Parallel Workbench",
    }
    all_options = {**own, **options}
    all_options["extra_patterns"] = [
        *all_options["extra_patterns"], *HANDLERS, *routes(readings)
    ]  # fmt: skip
    server = pn.serve(pages(live, shelf, readings), **all_options)
    bounded(server._http)
    hasten(server._tornado)
    check_messages(server._tornado)
    say_so(server._tornado, lambda: [each.slug for each in catalogue() if each.built])
    send_all()
    read_any()
    greet(server._tornado)
    guard(server._tornado, rules or access(HOST, server.port))  # a free port is known only now
    return server
