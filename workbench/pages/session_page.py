"""A page of one session: a head, the newest run's views under it, what went wrong, what to keep."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import panel as pn

from engine.core.config import Config
from engine.core.run import Run
from widgets.export.share import share
from widgets.stage.stage import Stage
from workbench.pages.actions import Action, actions, kept
from workbench.pages.frame.addresses import query_of
from workbench.pages.frame.shell import Shell, carry, html
from workbench.pages.frame.visitors import person
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import views
from workbench.session import Session, changed

LOOK = 0.025  # seconds between looks at what runs


class SessionPage:
    """Views in the middle, `left` in the side bar.

    `start`: the config that the page's address leaves out. `acts`: buttons before the one that
    keeps the run. `named`: what a kept run is called by what differs from the start.
    """

    def __init__(
        self, title: str, place: str, session: Session, start: Config, shelf: Shelf,
        shown: Sequence[str], acts: Sequence[Action], named: str,
    ) -> None:  # fmt: skip
        self.place, self.session, self.start, self.shelf = place, session, start, shelf
        self.named = named
        self.shell = Shell(title, place)
        self.stage = Stage(tuple(shown))
        self.stage.watch(self.look, LOOK)
        self.fault = html("", visible=False, margin=(0, 0, 12, 0))
        self.head = html("", margin=(0, 0, 8, 0))
        self.actions = actions([], [*acts, ("Keep for comparing", self._keep)])
        self._shown: Run | None = None

    def _keep(self) -> None:
        newest = self.session.run
        if newest is None or newest.failure is not None or not newest.log.events:
            self.actions.note = {"text": "nothing to keep: this run has no events"}
            return
        differing = changed(self.start, self.session.config)
        words = ", ".join(f"{path}={after}" for path, (_, after) in list(differing.items())[:2])
        name = self.shelf.keep(newest, f"{self.named}: {words}" if words else self.named)
        self.actions.note = kept(self.shell.dark, name)

    def look(self) -> None:
        """Follow the newest run; say what went wrong."""
        newest = self.session.run
        self.session.tend()
        if newest is not self._shown:
            before, self._shown = self._shown, newest
            self.stage.open(newest)
            if before is not None and newest is not None:
                self._address(newest.config)
        failure = newest.failure if newest is not None else None
        text = str(failure) if failure is not None else self.session.said
        if self.fault.visible != bool(text):
            self.fault.param.update(object=_wrong(text), visible=bool(text))

    def _address(self, config: Any) -> None:
        carry(self.shell.dark, **query_of(self.start, config))

    def laid_out(self, head: str, left: Any, dark: Callable[[bool], None]) -> Any:
        """The whole page, its first run begun by now. `dark`: what else changes its colours."""
        shell, self.head.object = self.shell, head
        shell.on_dark(self.stage.dark)
        shell.on_dark(dark)
        shell.page.param.update(sidebar_width=300)
        shell.page.sidebar = [left]
        files = share(
            lambda: self.session.runs[-1].log, tuple(v.name for v in self.stage.views),
            title=self.place, is_dark=lambda: shell.dark,
        )  # fmt: skip
        shell.on_dark(files.dark)
        shell.page.main = [
            pn.Column(
                self.head,
                pn.Row(self.actions, files, sizing_mode="stretch_width"), self.fault,
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
