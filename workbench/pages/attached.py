"""The page of a watched server: vLLM's or SGLang's metrics and cache as they come."""

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import update
from engine.core.errors import BadInput
from workbench.attach.watch import Attached, watch
from workbench.pages.frame.addresses import config_of
from workbench.pages.frame.shell import asked_knobs, html
from workbench.pages.frame.visitors import person
from workbench.pages.session_page import SessionPage
from workbench.pages.shelf.shelf import Shelf
from workbench.session import Session

PLACE = "attach"
SHOWN = ("levels", "latency")
WITH_CACHE = ("levels", "page_map", "latency")
SPANS = {"last 30 s": 30, "2 min": 120, "all": 0}  # of time, in sight
ABOUT = (
    "Requests, cache and tokens a second as the server publishes them under /metrics, and its "
    "latencies since the watch began. vLLM publishes them by itself, SGLang with --enable-metrics, "
    "<code>workbench serve</code> too."
)
FIRST = "Give the server's address on the left, such as http://127.0.0.1:8000, and press Enter."
EVENTS = (
    'With vLLM\'s --kv-events-config \'{"enable_kv_cache_events": true, "publisher": "zmq"}\' '
    "its cache can be seen page by page; the address is that of its publisher."
)


class AttachedPage(SessionPage):
    """Where the server is on the left, its levels and latencies in the middle."""

    def __init__(self, shelf: Shelf) -> None:
        session = Session(watch, Attached())
        session.config = config = config_of(session.start, asked_knobs())
        assert isinstance(config, Attached)
        self.config = config
        shown = WITH_CACHE if config.cache_events else SHOWN
        acts = [("Watch anew", self._again), ("Stop", self._stop)]
        super().__init__(
            "A server, watched", PLACE, session, session.start, shelf, shown, acts, "watched"
        )
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "size": "small", "margin": (6, 0)}
        self.url = pmui.TextInput(
            label="Server", value=config.url, placeholder="http://127.0.0.1:8000", **wide
        )
        self.events = pmui.TextInput(
            label="Its cache events", value=config.cache_events,
            placeholder="tcp://127.0.0.1:5557", **wide,
        )  # fmt: skip
        self.span = pmui.RadioButtonGroup(options=SPANS, value=30, **wide)
        self.span.param.watch(lambda event: self.stage.recent(event.new), "value")
        for field in (self.url, self.events):
            field.param.watch(self._entered, "enter_pressed")
        self.stage.recent(self.span.value)

    def _entered(self, _: Any) -> None:
        self._again()

    def _again(self) -> None:
        texts = {"url": self.url, "cache_events": self.events}
        asked = {name: (each.value_input or each.value).strip() for name, each in texts.items()}
        try:
            self.session.config = update(self.session.config, asked)
        except BadInput as fault:
            self.actions.note = {"text": str(fault)}
            return
        self.session.begin()

    def _stop(self) -> None:
        if self.session.run is not None:
            self.session.run.stop()

    def page(self) -> Any:
        self.shelf.check_room(person())
        if self.config.url:
            self.session.begin()
        self.look()
        where = escape(self.config.url or "a server")
        head = f"<h1>What does {where} do?</h1><p class='faint'>{ABOUT}</p>"
        if not self.config.url:
            head += f"<p><b>{FIRST}</b></p>"
        left = pn.Column(
            self.url, self.events, html(f"<p class='faint'>{EVENTS}</p>"),
            html("<h2>Time in sight</h2>", margin=(10, 0, 2, 0)), self.span,
            margin=(12, 16), sizing_mode="stretch_width",
        )  # fmt: skip
        return self.laid_out(head, left, lambda on: None)
