"""A study in a cell of a notebook or a frame of a page: no bar, knobs in a row, views in tabs."""

from functools import partial
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from workbench.catalogue import entry
from workbench.pages.actions import actions
from workbench.pages.frame.shell import Shell, html
from workbench.pages.frame.visitors import person
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import FOOT, StudyPanel

BARE = {
    "& .header, & .main .MuiToolbar-root": {"display": "none !important"}
}  # the bar and its room
TABS = {"page_map": "KV cache", "request_lanes": "Requests", "token_river": "Tokens"}


class EmbeddedPage:
    """A study's panel alone, as high as one view. `shelf`: where an app lists what pages show."""

    def __init__(self, panel: StudyPanel, shelf: Shelf | None = None) -> None:
        self.panel, self.shelf = panel, shelf
        row = entry(panel.study.slug)
        self.shell = Shell(row.title, "study", bare=True)
        self.shell.page.param.update(sx={**self.shell.page.sx, **BARE})
        self.title = panel.study.title or row.title

    def page(self) -> Any:
        panel, shell = self.panel, self.shell
        if self.shelf is not None:
            self.shelf.check_room(person())
            name = self.shelf.show(panel.session, person())
            pn.state.on_session_destroyed(partial(self._gone, name))
        if panel.session.run is None:
            panel.session.begin()
        panel.look()
        shell.on_dark(panel.dark)
        stage = panel.stage
        stage.hosted()
        stage.tick()
        stage.transport.bar.styles = FOOT
        names = [TABS.get(v.name, v.name.replace("_", " ").capitalize()) for v in stage.views]
        cards = list(zip(names, map(stage.card, stage.feeds), strict=True))
        tabs = pmui.Tabs(*cards, sizing_mode="stretch_width", margin=0)
        tabs.param.watch(lambda event: stage.show_only(event.new), "active")
        stage.show_only(0)
        row = actions(panel.tries(), [])
        row.margin = (6, 0, 0, 0)
        shell.page.main = [
            pn.Column(
                pn.Row(
                    html(
                        f"<h2>{escape(self.title)}</h2>",
                        width=190,
                        sizing_mode="fixed",
                        margin=(12, 8, 0, 0),
                    ),
                    row,
                    sizing_mode="stretch_width",
                ),  # fmt: skip
                panel.knobs.panel,
                panel.fault,
                tabs,
                stage.transport.bar,
                sizing_mode="stretch_width",
                margin=(0, 14),
            )
        ]
        pn.state.onload(panel.start)
        return shell.page

    def _gone(self, name: str, _: Any) -> None:
        if self.shelf is not None:
            self.shelf.hide(name)
        self.panel.close()
