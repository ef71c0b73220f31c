"""Studies in notebooks: `open_study("flover")` shows the app's study page as a cell's output.

In a notebook under a Jupyter server with the workbench's extension the page is live: the kernel
serves it to that server alone, which passes it on below its own address, behind its own login, on
this machine or a hub far away. Under a server without the extension the study is shown as
ipywidgets, which need no port. Elsewhere (headless runs, reports) it is a page that replays the
finished run by itself.
"""

import os
from base64 import b64encode
from html import escape
from typing import Any

import panel as pn

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.run import Run
from widgets.export.export import page
from workbench.catalogue import study
from workbench.drawing import drawings
from workbench.jupyter.kernels import served_below
from workbench.notebook.figure import figure
from workbench.notebook.pictures import STILL, picture
from workbench.notebook.served_pages import kernel_pages
from workbench.session import Session, study_session
from workbench.study import Grade, Study, Verdict, check
from workbench.summary import summary

HEIGHT = 900  # pixels of the cell's output
# What a page that replays a run may do: run its own scripts, as nobody's origin, and save pictures.
SANDBOX = 'sandbox="allow-scripts allow-downloads"'
WAIT = 600.0  # seconds a replay waits for its run to end


class OpenStudy(pn.viewable.Viewer):
    """A study in a notebook: shown by itself, turned and asked from code.

    `turn(**knobs)` runs it with other knobs; `run` and `log` are the newest run and its events;
    `figures()` what it came to; `figure("latency")` a chart of it for Bokeh, `figure()` where its
    claims hold; `check()` the verdicts of its claims.
    """

    def __init__(self, study: Study, session: Session, live: bool, height: int) -> None:
        super().__init__()
        self.study, self.session, self.live, self.height = study, session, live, height

    @property
    def run(self) -> Run:
        """The newest run; started where there is none yet."""
        run = self.session.run or self.session.begin()
        assert run is not None
        return run

    @property
    def log(self) -> Any:
        """The newest run's events, once it has ended."""
        return self.run.wait(WAIT).log

    def turn(self, **knobs: Any) -> "OpenStudy":
        """Run with these knobs set; a dot in a knob's path is written as two underscores."""
        self.session.turn(dotted(knobs))
        self.session.start_waiting()  # whoever asks for `run` next means this one
        return self

    def figures(self) -> dict[str, Any]:
        """What the newest run came to, as plain numbers."""
        return summary(self.log)

    def sql(self, query: str) -> Any:
        """What one SELECT over the newest run's events gives, as a pandas DataFrame: its tables
        and columns are `workbench.traces.sql.TABLES`, its times in seconds. Raises BadInput."""
        from pandas import DataFrame

        from workbench.traces.sql import asked

        found = asked(self.log, query)
        return DataFrame(found.rows, columns=list(found.columns))

    def figure(self, name: str = "", *, dark: bool = False, fast: bool = True, **size: int) -> Any:
        """A chart as a Bokeh figure: of the newest run (latency, levels or curves), or a map of
        where a claim holds or a sweep's curves, drawn for this config where they are not known.

        "" is the first map. `fast`: a coarse map. Raises BadInput for a chart there is not.
        """
        known = {each.name: each for each in drawings(self.study, self.session.seed)}
        drawing = known.get(name or next(iter(known), ""))
        if drawing is None:
            return figure(self.run, name, dark=dark, **size)
        if self.session.config != self.study.config or drawing.empty:
            going = drawing.ask(self.session.config, fast)
            if going is not None:
                going.wait()
        return drawing.figure(dark=dark, **size)

    def check(self, *, fast: bool = True, grade: Grade | None = None) -> list[Verdict]:
        """Judge the claims, or those of that grade alone, for the study's own config."""
        return list(check(self.study, fast=fast, grade=grade))

    def _ipython_display_(self) -> None:
        """The page, or the widget; where it only replays, a still of its first view too, for places
        that show no live page (a forge, a paper)."""
        from IPython.display import display

        if self.live and not served_below():
            display(self.widget())
            return
        display({"text/html": self._html(), "text/plain": repr(self)}, raw=True)
        still = None if self.live else self.still()
        if still is not None:
            image = {"image/png": b64encode(still).decode(), "text/plain": f"still of {self!r}"}
            display(image, raw=True, metadata={STILL: True})

    def still(self, view: str = "", width: int = 1280, height: int = 760) -> bytes | None:
        """A view of the finished run (its first, unless named) as PNG; None without a browser."""
        names = (view,) if view else self.study.views[:1]
        return picture(page(self.log, names, title=self.study.slug, is_still=True), width, height)

    def attention(self, request: str = "") -> Any:
        """Which tokens each token of the newest run's requests looks at: every head and one of
        them large, of `request` first. Raises BadInput where no Jupyter server shows live pages."""
        if not (self.live and served_below()):
            raise BadInput("attention: is shown by a Jupyter server; run the notebook there")
        self.run.wait(WAIT)
        where = escape(kernel_pages().attention(self.study, self.session, request))
        inside = f'<iframe src="{where}" style="{self._style}" title="attention"></iframe>'
        return pn.pane.HTML(inside, height=self.height, sizing_mode="stretch_width")

    def widget(self) -> Any:
        """The study as an ipywidget: its knobs and its views, to be put beside other widgets."""
        from workbench.notebook.widget import widget

        return widget(self.study, self.session)

    def __repr__(self) -> str:
        return f"<study {self.study.slug}, {len(self.session.runs)} runs>"

    def __panel__(self) -> Any:
        if self.live and not served_below():
            return pn.pane.IPyWidget(self.widget())
        return pn.pane.HTML(self._html(), height=self.height, sizing_mode="stretch_width")

    def _html(self) -> str:
        """An inline frame: the live page, or one that replays the finished run."""
        slug = self.study.slug
        if self.live:
            inside = f'src="{escape(kernel_pages().address(self.study, self.session))}"'
        else:
            inside = f'srcdoc="{escape(page(self.log, self.study.views, title=slug))}" {SANDBOX}'
        return f'<iframe {inside} style="{self._style}" title="{escape(slug)}"></iframe>'

    @property
    def _style(self) -> str:
        """Of a frame: its border within its width, or the cell's output scrolls sideways."""
        within = "display:block;box-sizing:border-box;width:100%"
        return f"{within};height:{self.height}px;border:1px solid #8884;border-radius:8px"


def open_study(
    slug: str,
    *,
    preset: str = "",
    seed: int = 0,
    live: bool | None = None,
    height: int = HEIGHT,
    **knobs: Any,
) -> OpenStudy:
    """Open a study with these knobs set (a dot in a knob's path is written as two underscores).

    `live`: True shows what can be turned, False a replay; None decides by whether a Jupyter server
    runs the kernel. Raises BadInput for an unknown slug, preset, knob or value.
    """
    chosen = study(slug)
    session = study_session(chosen, chosen.configured({}, preset), seed)
    session.config = update(session.config, dotted(knobs))
    return OpenStudy(chosen, session, under_jupyter() if live is None else live, height)


def dotted(knobs: dict[str, Any]) -> dict[str, Any]:
    return {path.replace("__", "."): value for path, value in knobs.items()}


def under_jupyter() -> bool:
    """Whether a running Jupyter server started this kernel, so that a browser is at hand."""
    from jupyter_server.serverapp import list_running_servers

    return any(server.get("pid") == os.getppid() for server in list_running_servers())
