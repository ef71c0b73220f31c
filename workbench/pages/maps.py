"""When is this paper right? A study's maps of where its claims hold, and its sweeps, below the
views: each a Bokeh figure with a sentence, drawn again for the present knobs when asked.

A figure takes longer to make than a view, and most people never scroll so far: those that are known
are made once a person comes near them.
"""

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import panel as pn

from engine.core.config import Config
from engine.core.errors import BadInput
from workbench.drawing import Drawing, MapDrawing, drawings
from workbench.pages.actions import actions
from workbench.pages.frame.shell import html
from workbench.pages.near import Near
from workbench.study import Study

WIDTH, HEIGHT = 560, 340  # pixels of a figure
FOOT = 90  # of what stands beneath it


class Maps:
    """The section. `refresh` shows what has come meanwhile; call it on the page's timer."""

    def __init__(self, study: Study, config: Callable[[], Config], seed: int = 0) -> None:
        self.config, self._dark = config, False
        self.cards = [_Card(self, drawing) for drawing in drawings(study, seed)]
        self.parts: list[Any] = []
        self.near = Near(width=1, height=1, margin=0)
        if self.cards:
            row = pn.FlexBox(*(card.panel for card in self.cards), sizing_mode="stretch_width")
            title = html("<h2>When is this paper right?</h2>", margin=(28, 0, 8, 0))
            self.parts = [title, self.near, row]

    def refresh(self) -> None:
        for card in self.cards:
            card.refresh(self._dark, self.near.is_near)

    def dark(self, on: bool) -> None:
        self._dark = on
        for card in self.cards:
            card.forget()

    def close(self) -> None:
        for card in self.cards:
            card.drawing.stop()


class _Card:
    """One figure with what can be asked of it and how far it is."""

    def __init__(self, section: Maps, drawing: Drawing) -> None:
        self.section, self.drawing = section, drawing
        self.picture = pn.pane.Bokeh(None, margin=0, visible=False)
        self.note = html("", margin=(0, 0, 0, 4))
        size = [("Draw in full", partial(self._ask, False)), ("Stop", drawing.stop)]
        buttons = actions([("Draw for these knobs", partial(self._ask, True))], size)
        buttons.margin = (4, 0, 4, 0)
        self.panel = pn.Column(self.picture, self.note, buttons, width=WIDTH, margin=(0, 24, 20, 0))
        self._shown: Any = None
        self._said = ""
        if not drawing.empty:
            self.panel.min_height = HEIGHT + FOOT  # so that nothing moves when it comes

    def _ask(self, fast: bool) -> None:
        self.drawing.ask(self.section.config(), fast)
        self.show(self.section._dark)

    def refresh(self, dark: bool, is_near: bool) -> None:
        """Show a picture that is new, and how far one is that is being drawn."""
        if is_near and self._now() != self._shown:
            self.show(dark)
        self._tell()

    def _now(self) -> Any:
        """What tells one picture from the next."""
        if isinstance(self.drawing, MapDrawing):
            return id(self.drawing.map)
        run = self.drawing.run
        return (id(run), len(run.log)) if run is not None else None

    def forget(self) -> None:
        """Make the picture anew when it is next looked at: its colours are others."""
        self._shown = None

    def show(self, dark: bool) -> None:
        self._shown = self._now()
        try:
            made = self.drawing.figure(dark=dark, width=WIDTH, height=HEIGHT)
        except BadInput:
            self.picture.visible = False
            return
        self.picture.param.update(object=made, visible=True)

    def _tell(self) -> None:
        said = self._status()
        if said != self._said:
            self._said = said
            self.note.object = f"<p class='faint small'>{escape(said)}</p>"

    def _status(self) -> str:
        run, name = self.drawing.run, self.drawing.name
        if run is not None and run.state != "closed" and run.live is not None:
            progress = run.live.progress
            return f"{progress.what or 'drawing'}: {progress.done:g} of {progress.total:g}"
        if run is not None and run.failure is not None:
            return f"{name}: {run.failure}"
        if isinstance(self.drawing, MapDrawing) and self.drawing.map is not None:
            drawn = self.drawing.map
            size = "coarse" if drawn.fast else "in full"
            where = "drawn here" if self.drawing.from_here else f"recorded on {drawn.machine}"
            bare = [point.told for point in drawn.points if point.figure is None]
            said = f"{self.drawing.claim.sentence} ({size}, {where})"
            if bare:
                said += f"; {len(bare)} of {len(drawn.points)} points have no figure: {bare[0]}"
            return said
        return f"{name}: not drawn yet" if self.drawing.empty else name
