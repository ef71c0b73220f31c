"""A replica's page: one of a fleet's, its own cache, lanes, levels and latency, alone."""

from html import escape
from typing import Any

import panel as pn

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.fleet.one_replica import of_replica, watched
from widgets.knobs.knobs import Knobs
from workbench.catalogue import entry, study
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import address, asked, asked_knobs, carry
from workbench.pages.frame.visitors import person
from workbench.pages.session_page import SessionPage
from workbench.pages.shelf.shelf import Shelf
from workbench.session import Session

PLACE = "replica"
SHOWN = ("page_map", "request_lanes", "levels", "latency")


class ReplicaPage(SessionPage):
    """The study's knobs left, the watched replica's views in the middle."""

    def __init__(self, shelf: Shelf) -> None:
        if not asked("slug"):
            raise BadInput("replica: of no study; open it from a fleet's tile")
        self.study = study(asked("slug"))
        config = watched(config_of(self.study.configured({}, asked("preset")), asked_knobs()))
        session = Session(of_replica(self.study.driver), config)
        self.knobs = Knobs(session, slug=self.study.slug, start=self.study.config)
        super().__init__(
            f"Replica {config.watch}", PLACE, session, self.study.config, shelf, SHOWN,
            [("Run again", session.begin)], f"{self.study.slug}, a replica",
        )  # fmt: skip

    def look(self) -> None:
        self.knobs.refresh()
        super().look()

    def _address(self, config: Config) -> None:
        carry(self.shell.dark, slug=self.study.slug, **query_of(self.start, config))
        self.head.object = self._head()

    def _head(self) -> str:
        """What this is, and the way back to the whole fleet."""
        config = watched(self.session.config)
        role = config.pools.role(config.watch, config.replicas)
        knobs = query_of(self.study.config, config)
        back = address("study", self.shell.dark, slug=self.study.slug, **knobs)
        title = escape(entry(self.study.slug).title)
        does = {"prefill": "computes prompts", "decode": "decodes"}.get(role, "does both phases")
        return (
            f"<h1>What does replica {config.watch} do?</h1><p class='faint'>One of "
            f"{config.replicas:,} of {title}; it {does}. The whole fleet is played, and what came "
            f'to this one is shown.</p><p><a href="{escape(back)}">The whole fleet →</a></p>'
        )

    def page(self) -> Any:
        self.shelf.check_room(person())
        self.session.begin()
        self.look()
        knobs = pn.Column(self.knobs.panel, margin=(12, 16), sizing_mode="stretch_width")
        return self.laid_out(self._head(), knobs, self.knobs.dark)
