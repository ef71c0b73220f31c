"""The live pages of a notebook's kernel, served on loopback to the Jupyter server that started it.

Nobody else gets an answer: every request must bear a secret that only that server can read. The
browser sees the pages below the server's own address, whatever base address a hub gives it.
"""

import asyncio
import atexit
import secrets
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

import panel as pn

from workbench.api.server import free_port
from workbench.attention.page import AttentionPage
from workbench.attention.readings import Readings
from workbench.attention.routes import routes
from workbench.jupyter.kernels import forget, kernel_file, served_below, write
from workbench.jupyter.reached import HOST, only_for
from workbench.pages.embedded import BARE, EmbeddedPage
from workbench.pages.frame.files import HANDLERS, hasten
from workbench.pages.frame.received import check_messages
from workbench.pages.frame.shell import asked, message_page
from workbench.pages.frame.unsent import send_all
from workbench.pages.study_panel import StudyPanel
from workbench.session import Session
from workbench.study import Study

START = 60.0  # seconds the server may take to start


@dataclass(frozen=True)
class Shown:
    """A study that a cell shows."""

    study: Study
    session: Session


class KernelPages:
    """The pages this kernel serves: one server, a page for each session, by a secret name."""

    def __init__(self) -> None:
        self.open: dict[str, Shown] = {}
        self.readings = Readings()
        self.name = secrets.token_urlsafe(16)
        self.prefix = f"{served_below()}/kernel/{self.name}"
        self.secret = secrets.token_urlsafe(32)
        self.port = 0

    def address(self, study: Study, session: Session) -> str:
        """The path at which the Jupyter server shows it; our server starts with the first."""
        known = next((name for name, kept in self.open.items() if kept.session is session), None)
        name = known or secrets.token_urlsafe(16)
        self.open[name] = Shown(study, session)
        if not self.port:
            self.start()
        return f"{self.prefix}/study?name={name}"

    def attention(self, study: Study, session: Session, request: str = "") -> str:
        """The path of the attention of its newest run's requests; one of them first, if named."""
        path = self.address(study, session).replace("/study?", "/attention?")
        return f"{path}&{urlencode({'request': request})}" if request else path

    def start(self) -> None:
        """Serve from a thread of its own; the Jupyter server is told where by a file."""
        ready = threading.Event()
        thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="kernel pages", daemon=True
        )
        thread.start()
        if not ready.wait(START):
            raise OSError("the kernel's pages did not start")
        file = kernel_file(self.name)
        write(file, {"port": self.port, "secret": self.secret})
        atexit.register(forget, file)

    async def _serve(self, ready: threading.Event) -> None:
        port = free_port()
        # No pn.extension() here: it would make the notebook ask other hosts for its scripts.
        server = pn.serve(
            {"study": self._page, "attention": self._attention},
            address=HOST,
            port=port,
            prefix=self.prefix,
            websocket_origin=[f"{HOST}:{port}"],
            extra_patterns=[*HANDLERS, *routes(self.readings)],
            show=False,
            start=False,
            verbose=False,
        )
        hasten(server._tornado)
        check_messages(server._tornado)
        send_all()
        only_for(server._tornado, self.secret)
        server.start()
        self.port = port
        ready.set()
        await asyncio.Event().wait()

    def _page(self) -> Any:
        shown = self.open.get(asked("name"))
        if shown is None:
            return message_page("This page has gone", "Run the notebook's cell again.")
        return EmbeddedPage(StudyPanel(shown.study, shown.session, across=True)).page()

    def _attention(self) -> Any:
        shown = self.open.get(asked("name"))
        if shown is None or shown.session.run is None:
            return message_page("This page has gone", "Run the notebook's cell again.")
        of = shown.session.run, shown.study.slug, self.readings, asked("request")
        return AttentionPage(*of, bare=BARE).page()


@cache
def kernel_pages() -> KernelPages:
    """The one server of this process."""
    return KernelPages()
