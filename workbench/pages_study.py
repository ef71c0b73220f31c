"""A study's page: knobs left, views in the middle, claims right, the address carrying it all."""

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import Config
from engine.core.errors import BadInput
from widgets.downloads import downloads
from widgets.host import Stage
from widgets.knobs import Knobs
from workbench.addresses import config_of, query_of
from workbench.catalogue import Entry, entry, study
from workbench.pages_claims import Claims
from workbench.pages_shell import Shell, asked, html
from workbench.session import Session, changed
from workbench.shelf import Shelf
from workbench.study import Study
from workbench.verdicts import Verdicts

LOOK = 25  # milliseconds between looks at what runs
CSS = """
.top { display: grid; gap: 6px; } .top p { font-size: 14px; }
.paper { font-size: 13px; color: var(--wb-faint); }
"""


class StudyPanel:
    """A study as a person uses it, in the app or a notebook: `knobs`, `views`, `claims`."""

    def __init__(self, chosen: Study, config: Config, seed: int = 0) -> None:
        self.study = chosen
        self.session = Session(chosen.driver, chosen.config, study=chosen.slug, seed=seed, rest=0)
        self.session.config = config
        self.verdicts = Verdicts(chosen, seed)
        self.knobs = Knobs(config, self._turned, slug=chosen.slug)
        self.knobs.start = chosen.config
        self.stage = Stage(chosen.views)
        self.claims = Claims(chosen, self.verdicts, lambda: self.session.config)
        self.fault = html("", visible=False, margin=(0, 0, 12, 0))
        self._shown: Any = None
        self._timer: Any = None
        self._judged = False

    def begin(self) -> None:
        """Run the study; before the page is sent, so that it arrives with a picture."""
        self.session.begin()
        self._look()

    def start(self) -> None:
        """Follow the run from now on, in the page this is called from."""
        self.stage.start()
        self._timer = pn.state.add_periodic_callback(self._look, LOOK)

    def close(self, *_: Any) -> None:
        """Stop what runs; the page has gone."""
        self.session.close()
        self.verdicts.close()

    def turn(self, changes: Any) -> None:
        """Set knobs from outside the control panel: a try, a preset."""
        self.knobs.set(self.study.configured(changes), tell=True)

    def _turned(self, config: Config) -> None:
        self.session.become(config)
        self._look()
        self.on_turned(config)

    def on_turned(self, config: Config) -> None:
        """Whoever hosts the panel may listen to every new config."""

    def _look(self) -> None:
        run = self.session.run
        if run is not self._shown:
            self._shown = run
            self.stage.open(run)
        if run is not None and run.state == "closed":
            if not self._judged:  # once, when the first picture stands
                self._judged = True
                self.verdicts.ask(self.session.config)
            failure = str(run.failure) if run.failure is not None else ""
            if self.fault.visible != bool(failure):
                text = f'<p style="color:var(--wb-wrong)">{escape(failure)}</p>'
                self.fault.param.update(object=text, visible=bool(failure))
        self.claims.refresh()

    def tries(self) -> list[Any]:
        """The three buttons that set the knobs to an interesting place."""
        found = []
        for label, changes in self.study.tries:
            button = pmui.Button(label=label, variant="outlined", size="small", margin=(0, 8, 0, 0))
            button.on_click(lambda _, changes=changes: self.turn(changes))
            found.append(button)
        return found

    def heading(self, row: Entry) -> Any:
        """Name, paper, what happens."""
        arxiv = f" · arXiv {escape(row.arxiv)}" if row.arxiv else ""
        text = (
            f'<div class="top"><h1>{escape(self.study.title or row.title)}</h1>'
            f'<div class="paper">{escape(row.paper)}{arxiv}</div>'
            f"<p>{escape(self.study.about)}</p></div>"
        )
        return html(text, CSS, margin=(0, 0, 12, 0))

    def dark(self, on: bool) -> None:
        self.stage.dark(on)
        self.knobs.dark(on)


class StudyPage:
    """The panel in the app's frame, with its address kept up to date."""

    def __init__(self, shelf: Shelf) -> None:
        slug = asked("slug")
        if not slug:
            raise BadInput("study: none named; choose one from the catalogue")
        self.row, chosen, self.shelf = entry(slug), study(slug), shelf
        asked_for = {
            name: values[0].decode("utf-8", "replace")
            for name, values in (pn.state.session_args or {}).items()
        }
        config = config_of(chosen.configured({}, asked("preset")), asked_for)
        self.panel = StudyPanel(chosen, config)
        self.panel.on_turned = self._address  # type: ignore[method-assign]
        self.shell = Shell(self.row.title, "study")

    def _address(self, config: Config) -> None:
        """Put every knob that differs into the address."""
        location = pn.state.location
        if location is not None:
            theme = {"theme": "dark"} if self.shell.dark else {}
            query = {"slug": self.row.slug, **query_of(self.panel.study.config, config), **theme}
            location.search = "?" + "&".join(f"{k}={v}" for k, v in _quoted(query))

    def _keep(self, _: Any) -> None:
        run = self.panel.session.run
        if run is not None:
            differing = changed(self.panel.study.config, self.panel.session.config)
            words = ", ".join(f"{path}={after}" for path, (_, after) in differing.items())
            name = self.shelf.keep(run, f"{self.row.slug}: {words}" if words else self.row.slug)
            pn.state.notifications and pn.state.notifications.info(f"kept as {name}")

    def page(self) -> Any:
        panel, shell = self.panel, self.shell
        keep = pmui.Button(label="Keep for comparing", size="small", variant="text")
        keep.on_click(self._keep)
        actions = pn.FlexBox(
            *panel.tries(), keep, sizing_mode="stretch_width", margin=(0, 0, 16, 0)
        )
        saved = downloads(
            lambda: panel.session.run.log,  # type: ignore[union-attr]
            panel.study.views,
            title=self.row.slug,
            is_dark=lambda: shell.dark,
        )
        panel.begin()
        shell.on_dark(panel.dark)
        shell.page.param.update(
            sidebar_width=300,
            contextbar_width=340,
            contextbar_open=True,
            contextbar_variant="persistent",
        )
        shell.page.sidebar = [
            pn.Column(panel.knobs.panel, margin=(12, 16), sizing_mode="stretch_width")
        ]
        shell.page.contextbar = [panel.claims.panel]
        shell.page.main = [
            pn.Column(
                panel.heading(self.row),
                actions,
                panel.fault,
                panel.stage.__panel__(),
                saved,
                sizing_mode="stretch_width",
                margin=(24, 28),
            )
        ]
        pn.state.onload(panel.start)
        pn.state.on_session_destroyed(panel.close)
        return shell.page


def _quoted(query: dict[str, Any]) -> list[tuple[str, str]]:
    from urllib.parse import quote

    return [(quote(str(k)), quote(str(v))) for k, v in query.items()]
