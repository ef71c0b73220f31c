"""A study's page: knobs left, views in the middle, claims right, the address carrying it all."""

from html import escape
from typing import Any
from urllib.parse import urlencode

import panel as pn

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.fleet.config import FleetConfig
from engine.inference.kept_tokens import kept as kept_tokens
from widgets.export.share import File, Text, share
from widgets.knobs.config_text import as_cli, as_study
from workbench.attention.page import link
from workbench.catalogue import entry, study
from workbench.pages.actions import actions, kept
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, address, asked, asked_knobs, carry, html
from workbench.pages.frame.visitors import person
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import StudyPanel, views
from workbench.session import study_session

BESIDE = {"position": "absolute", "right": "0", "top": "6px"}  # beside the name
KNOBS = 2  # of those that differ, named by a run that is kept


def asked_study(across: bool = False) -> StudyPanel:
    """The study the address names, with the knobs it carries. `across`: the paper's in a row.
    Raises BadInput."""
    slug = asked("slug")
    if not slug:
        raise BadInput("study: none named; choose one from the catalogue")
    chosen = study(slug)
    start = chosen.configured({}, asked("preset"))
    session = study_session(chosen, config_of(start, asked_knobs()))
    return StudyPanel(
        chosen, session, at=asked("at"), pin=asked("pin"), claim=asked("claim"), across=across
    )


class StudyPage:
    """A study's panel in the app's frame."""

    def __init__(self, panel: StudyPanel, shelf: Shelf) -> None:
        self.panel, self.shelf = panel, shelf
        self.row = entry(panel.study.slug)
        self.shell = Shell(self.row.title, "study")
        more = [("Run step by step", self._again), ("Keep for comparing", self._keep)]
        more.append((f"Claims: {len(panel.study.claims)}", self._claims))
        self.actions = actions(panel.tries(), more)
        self.listed = ""  # how the shelf calls what this page shows
        self.has_requests = "request_lanes" in panel.study.views
        has_third = self.has_requests or isinstance(panel.session.config, FleetConfig)
        self.wide = 272 if has_third else 177  # pixels of the ways onward
        self.onward = html("", width=self.wide, height=22, sizing_mode="fixed", styles=BESIDE)
        panel.on_turned = self._address
        panel.stage.param.watch(lambda _: self._lead(), "chosen")
        self.shell.on_dark(lambda _: self._lead())

    def _lead(self) -> None:
        """The way to how the figures respond, with the knobs as they stand."""
        knobs = query_of(self.panel.study.config, self.panel.session.config)
        to = address("response", self.shell.dark, slug=self.row.slug, **knobs)
        told = address("lecture", self.shell.dark, slug=self.row.slug, **knobs)
        self.onward.object = (
            f'<a href="{escape(to)}" title="Its figures over one knob or two">Response →</a>'
            f' &nbsp; <a href="{escape(told)}" title="Step by step, for a room">Lecture →</a>'
        )
        if isinstance(self.panel.session.config, FleetConfig):
            number = self._replica(self.panel.session.config)
            one = {"slug": self.row.slug, **knobs, "watch": str(number)}
            own = escape(address("replica", self.shell.dark, **one))
            hint = "Its own cache and lanes; press another tile for another replica's"
            self.onward.object += f' &nbsp; <a href="{own}" title="{hint}">Replica {number} →</a>'
        elif self.has_requests and self.listed:
            self.onward.object += f" &nbsp; {link(self.listed, self.shell.dark, self._pinned())}"

    def _replica(self, config: FleetConfig) -> int:
        """The replica whose tile is lit up, else the one that is watched."""
        names = [f"replica {number}" for number in range(config.replicas)]
        chosen = self.panel.stage.chosen
        return names.index(chosen) if chosen in names else max(0, config.watch)

    def _pinned(self) -> str:
        """The request that is lit up and has its tokens kept, "" for none."""
        run, chosen = self.panel.session.run, self.panel.stage.chosen
        return chosen if run is not None and chosen in kept_tokens(run.log.blobs) else ""

    def _address(self, config: Config) -> None:
        """Put every knob that differs into the address."""
        self._lead()
        knobs = query_of(self.panel.study.config, config)
        carry(self.shell.dark, slug=self.row.slug, **knobs)

    def _claims(self) -> None:
        """Show the column of claims, or fold it away."""
        self.shell.page.contextbar_open = not self.shell.page.contextbar_open

    def _keep(self) -> None:
        run = self.panel.session.run
        if run is None or run.failure is not None or not run.log.events:
            self.actions.note = {"text": "nothing to keep: this run has no events"}
            return
        differing = query_of(self.panel.study.config, self.panel.session.config)
        words = ", ".join(f"{path}={after}" for path, after in list(differing.items())[:KNOBS])
        name = self.shelf.keep(run, f"{self.row.slug}: {words}" if words else self.row.slug)
        self.actions.note = kept(self.shell.dark, name)

    def _again(self) -> None:
        self.panel.session.begin(paused=True)
        self.panel.look()

    def _share(self) -> Any:
        """What can be taken along of what stands here now."""
        panel, slug, start = self.panel, self.row.slug, self.panel.study.config
        texts: list[Text] = [
            ("Link to this moment", self._link),
            ("Command line", lambda: as_cli(panel.session.config, slug, start)),
            ("Python", lambda: as_study(panel.session.config, slug, start)),
        ]
        notebook: File = ("Notebook", f"{slug}.ipynb", self._notebook)
        menu = share(
            lambda: panel.session.runs[-1].log,
            panel.study.views,
            title=slug,
            is_dark=lambda: self.shell.dark,
            texts=texts,
            files=[notebook],
        )
        self.shell.on_dark(menu.dark)
        return menu

    def _link(self) -> str:
        """This page's query: knobs, moment, what is pinned."""
        knobs = query_of(self.panel.study.config, self.panel.session.config)
        return "?" + urlencode({"slug": self.row.slug, **knobs, **self.panel.where()})

    def _notebook(self) -> bytes:
        from nbformat import writes

        from workbench.study_notebook import notebook_of

        made = notebook_of(self.panel.study, self.panel.session.config)
        return str(writes(made)).encode()

    def page(self) -> Any:
        panel, shell = self.panel, self.shell
        self.shelf.check_room(person())
        if panel.session.run is None:
            panel.session.begin(paused=asked("paused") == "true")
        panel.look()
        shell.on_dark(panel.dark)
        shell.page.param.update(
            sidebar_width=300,
            contextbar_width=340,
            contextbar_open=not shell.narrow,
            contextbar_variant="persistent",
        )
        knobs = pn.Column(panel.knobs.panel, margin=(12, 16), sizing_mode="stretch_width")
        shell.page.sidebar = [knobs]
        shell.page.contextbar = [panel.claims.panel]
        shell.page.main = [
            pn.Column(
                panel.heading(self.row, self.wide),
                self.onward,
                pn.Row(self.actions, self._share(), sizing_mode="stretch_width"),
                panel.fault,
                *views(panel.stage),
                *panel.maps.parts,
                sizing_mode="stretch_width",
                margin=(12, 28),
            )
        ]
        panel.knobs.panel.sought = asked("knob")
        if asked("view") in panel.study.views:
            panel.stage.transport.bar.sought = panel.study.views.index(asked("view"))
        pn.state.onload(panel.start)
        name = self.listed = self.shelf.show(panel.session, person())
        self._lead()
        pn.state.on_session_destroyed(lambda _: self._gone(name))
        return shell.page

    def _gone(self, name: str) -> None:
        self.shelf.hide(name)
        self.panel.close()
