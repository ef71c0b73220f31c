"""A study as a lecture: one large view, captions step by step, predict and reveal."""

from functools import partial
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.run import Run
from workbench.catalogue import entry
from workbench.lecture import Step, answered, known, question, revealed, steps
from workbench.pages.frame.shell import Shell, address, html, prose
from workbench.pages.frame.visitors import person
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import FOOT, StudyPanel
from workbench.study import Changes

SCALE = 1.5  # of all that is drawn
LOOK = 0.2  # seconds between looks whether a run has ended
CSS = """
.caption { font-size: 30px; line-height: 1.25; font-weight: 500;
  min-height: 38px; max-width: 70ch; }
.asked { font-size: 22px; color: var(--wb-faint); } .told { font-size: 22px; font-weight: 600; }
.count { font-size: 16px; color: var(--wb-faint); }
"""
LARGE = {"&.MuiButton-root, & .MuiButton-root": {"fontSize": "16px"}}


class LecturePage:
    """Caption, prediction, the first view of the study. `shelf`: where an app lists its runs."""

    def __init__(self, panel: StudyPanel, shelf: Shelf) -> None:
        self.panel, self.shelf = panel, shelf
        self.steps, self.place = steps(panel.study), 0
        self.first: Run | None = None
        self.before: Log | None = None  # the run at the study's own setting, once it has ended
        self.base = panel.session.config  # what every try is turned from
        self.fault = ""
        self.said, self.waits = "", False  # what was predicted; whether its run goes on
        row = entry(panel.study.slug)
        self.shell = Shell(row.title, "study")
        self.caption = html("", CSS)
        self.count = html("", CSS, width=70, sizing_mode="fixed", height=24, align="center")
        self.choices = pn.FlexBox(margin=(6, 0))
        self.back = pmui.Button(label="← Back", variant="outlined", sx=LARGE, margin=(6, 8, 6, 0))
        self.next = pmui.Button(label="Next →", variant="contained", sx=LARGE, margin=(6, 8))
        self.back.on_click(lambda _: self.go(self.place - 1))
        self.next.on_click(lambda _: self.go(self.place + 1))
        panel.stage.watch(self.look, LOOK)
        self.go(0)

    @property
    def step(self) -> Step:
        return self.steps[self.place]

    def go(self, place: int) -> None:
        """Show the step there; a try is turned only once something is predicted."""
        left = self.step
        self.place = max(0, min(place, len(self.steps) - 1))
        self.said, self.waits = "", False
        if left.changes is not None and left is not self.step:
            self._turn({})
        self._show()

    def predict(self, said: str) -> None:
        """A person predicted: turn the knobs, or tell what is known of the claim."""
        self.said = said
        if self.step.changes is not None:
            self.waits = self._turn(self.step.changes)
        self._show()

    def _turn(self, changes: Changes) -> bool:
        """Run with `changes` to where it began; False, keeping why, where they do not fit."""
        try:
            self.panel.session.become(update(self.base, changes))
        except BadInput as fault:
            self.fault = str(fault)
            return False
        self.fault = ""
        self.panel.knobs.refresh()
        return True

    def look(self) -> None:
        """Note when the run that is waited for has ended."""
        run = self.panel.session.run
        if run is None or run.state != "closed" or run.failure is not None:
            return
        if self.before is None and run is self.first:
            self.before = run.log
            self._show()
        elif self.waits and run.log is not self.before:
            self.waits = False
            self._show()

    def _told(self) -> str:
        """What the prediction came to; "" before."""
        if not self.said:
            return ""
        if self.step.claim is not None:
            right, sentence = known(self.step.claim)
        elif self.waits or self.before is None:
            return self.fault or "running …"
        elif self.fault:
            return self.fault
        else:
            right, sentence = revealed(self.before, self.panel.session.runs[-1].log)
        return f"{sentence} {answered(right, self.said)}".strip()

    def _show(self) -> None:
        asks, told = question(self.step, self.before), self._told()
        if self.step.changes is not None and self.before is None:
            asks = "One moment: the run to compare with goes on …"
        self.caption.object = (
            f"<div class='caption' role='status'>{prose(self.step.caption)}</div>"
            f"<div class='asked'>{escape(asks)}</div><div class='told'>{escape(told)}</div>"
        )
        self.count.object = f"<div class='count'>{self.place + 1} of {len(self.steps)}</div>"
        self.back.disabled, self.next.disabled = self.place == 0, self.place + 1 == len(self.steps)
        buttons: list[Any] = []
        if question(self.step, self.before) and not self.said:
            for choice in self.step.choices:
                button = pmui.Button(label=choice.capitalize(), variant="outlined", sx=LARGE,
                                     margin=(6, 8))  # fmt: skip
                button.on_click(partial(self._pressed, choice))
                buttons.append(button)
        self.choices.objects = buttons

    def _pressed(self, choice: str, _: Any) -> None:
        self.predict(choice)

    def page(self) -> Any:
        panel, shell = self.panel, self.shell
        self.shelf.check_room(person())
        if panel.session.run is None:
            panel.session.begin()
        self.first = panel.session.run
        panel.look()
        stage = panel.stage
        for feed in stage.feeds:
            if hasattr(feed.drawing, "magnify"):
                feed.drawing.magnify(SCALE)
        shell.on_dark(panel.dark)
        stage.hosted()
        stage.tick()
        stage.transport.bar.styles = FOOT
        to = escape(address("study", shell.dark, slug=panel.study.slug))
        title = escape(panel.study.title or entry(panel.study.slug).title)
        shell.page.param.update(main_width=1800, app_bar_width="100%")
        shell.page.main = [
            pn.Column(
                pn.Row(
                    html(f"<div class='count'><a href='{to}'>{title}</a></div>", CSS),
                    self.count, self.back, self.next, sizing_mode="stretch_width",
                ),
                self.caption, self.choices, panel.fault, stage.card(stage.feeds[0]),
                stage.transport.bar, sizing_mode="stretch_width", margin=(8, 28),
            )
        ]  # fmt: skip
        pn.state.onload(panel.start)
        name = self.shelf.show(panel.session, person())
        pn.state.on_session_destroyed(partial(self._gone, name))
        return shell.page

    def _gone(self, name: str, _: Any) -> None:
        self.shelf.hide(name)
        self.panel.close()
