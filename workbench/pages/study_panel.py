"""A study as a person uses it, in the app or a notebook: knobs, views, claims, one session."""

from collections.abc import Callable
from functools import partial
from html import escape
from time import perf_counter
from typing import Any

from engine.core.config import Config, knobs
from engine.core.run import Run
from engine.hardware.device import devices
from widgets.knobs.config_text import as_study
from widgets.knobs.knobs import Knobs
from widgets.stage.stage import Stage
from widgets.stage.telling import telling
from workbench.catalogue import Entry
from workbench.moment import moment
from workbench.pages.doors.model import model_names
from workbench.pages.frame.shell import html, prose
from workbench.pages.maps import Maps
from workbench.pages.verdicts.claims import Claims
from workbench.pages.verdicts.verdicts import Verdicts
from workbench.session import Session
from workbench.study import Changes, Study

GLANCE = 5.0  # seconds of the wall: a run over sooner is replayed, slowly enough to be seen
GAP = 16  # pixels between a paper's name and the ways onward
LONG_NAME = 28  # characters of a name that stand beside the ways onward at 1280 pixels
ROW = 5  # knobs of the paper at most
LOOK = 0.025  # seconds between looks at what runs
FOOT = {
    "position": "sticky",
    "bottom": "0",
    "z-index": "5",
    "background": "var(--wb-paper)",
    "border-top": "1px solid var(--wb-line)",
}
CSS = """
:host { min-width: 0; overflow: hidden; }
.top { display: grid; gap: 4px; grid-template-columns: minmax(0, 1fr); }
.name { display: flex; flex-wrap: wrap; gap: 0 14px; align-items: baseline; }
.name { height: 28px; overflow: hidden; } /* a paper without room beside the name is not shown */
.name > * { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.name h1 { flex: none; max-width: calc(100% - 8px); font-size: 22px; line-height: 28px; }
.name h1.long { font-size: 17px; }
.paper { flex: 1 1 170px; font-size: 12px; color: var(--wb-faint); }
summary { list-style: none; cursor: pointer; max-width: 110ch; overflow: hidden;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; }
details[open] summary { -webkit-line-clamp: none; }
summary::-webkit-details-marker { display: none; }
"""


def paper_knobs(study: Study, config: Config) -> tuple[str, ...]:
    """The knobs that the study itself turns, the commonest first: of its tries, its presets and
    its maps; of a study that turns none, its first numbers."""
    known = {knob.path: knob for knob in knobs(config)}
    turned = [path for _, changes in study.tries for path in changes]
    turned += [path for changes in study.presets.values() for path in changes]
    turned += [regime.knob for regime in study.regimes]
    ordered = sorted(dict.fromkeys(turned), key=lambda path: -turned.count(path))
    found = [path for path in ordered if path in known][:ROW]
    numbers = [path for path, knob in known.items() if knob.type in ("int", "float")]
    return tuple(found or numbers[:ROW])


class StudyPanel:
    """The parts of a study's page. `on_turned`: whoever hosts it hears of every config that runs
    after the first. `at`: where the first run's cursor is to stand, in seconds or, with a percent
    sign, as a share of the run; `pin`: the owner that is lit up; `claim`: the one that stands
    first; `across`: the paper's knobs stand in a row. Raises BadInput for a moment that is neither,
    and for no such claim."""

    def __init__(
        self, chosen: Study, session: Session, *, at: str = "", pin: str = "", claim: str = "",
        across: bool = False,
    ) -> None:  # fmt: skip
        self.study, self.session = chosen, session
        self.verdicts = Verdicts(chosen, session.seed)
        self.knobs = Knobs(
            session, slug=chosen.slug, start=chosen.config,
            python=partial(as_study, slug=chosen.slug, start=chosen.config),
            first=paper_knobs(chosen, session.config), across=across, waits=True,
            names={"model": model_names(), "device": devices()},
        )  # fmt: skip
        self.stage = Stage(chosen.views)
        self.stage.watch(self.look, LOOK)
        self.claims = Claims(chosen, self.verdicts, lambda: self.session.config, claim)
        self.maps = Maps(chosen, lambda: self.session.config, session.seed)
        self.fault = html("", visible=False, margin=(0, 0, 12, 0))
        self.on_turned: Callable[[Config], None] = lambda config: None
        self._at, self._pin = moment(at) if at else None, pin
        self._shown: Any = None
        self._replayed = False
        self._rested: Run | None = None

    def start(self) -> None:
        """Follow the run from now on, in the page this is called from."""
        self.stage.start()

    def close(self, *_: Any) -> None:
        """Stop what runs; the page has gone."""
        self.session.close()
        self.verdicts.close()
        self.maps.close()

    def turn(self, changes: Changes) -> None:
        """Set knobs from outside the control panel, on the study's own config."""
        self.session.become(self.study.configured(changes))
        self.knobs.refresh()

    def look(self) -> None:
        """Follow the session: its config, its newest run, its end, the claims judged meanwhile."""
        run = self.session.run
        self.session.tend()
        if run is not self._shown:
            before, self._shown = self._shown, run
            self.stage.open(run)
            if before is not None and run is not None:
                self.on_turned(run.config)
        if self.stage.has_shown:
            self.knobs.refresh()
        if run is not None and run.state == "closed":
            self._ended(run)
        elif run is None:
            self._tell(self.session.said)
        self.claims.refresh()
        self.maps.refresh()

    def _ended(self, run: Run) -> None:
        """Say what went wrong; replay the first run where it was over before anyone could look."""
        failure = str(run.failure) if run.failure is not None else self.session.said
        self._tell(failure)
        if not self._replayed and self._at is not None:
            self._place(run, *self._at)
        elif not self._replayed and perf_counter() - self.stage.tracks[0].opened < GLANCE:
            self.stage.cursor.duration = run.log.duration  # the stage's next tick may be late
            self.stage.cursor.fit()
            self.stage.cursor.play()
        elif run is not self._rested and self._at_end():
            self._rest(run)
        self._replayed = True

    def _at_end(self) -> bool:
        """Whether the cursor stands at the run's end and no person put it there."""
        cursor = self.stage.cursor
        return cursor.share is None and not cursor.playing and cursor.now >= cursor.duration

    def _rest(self, run: Run) -> None:
        """Stand where the run tells most, where that is not its end. Once a run: a person may want
        to see the end."""
        self._rested, moment = run, telling(run.log, self.study.views)
        if moment is not None:
            self.stage.cursor.duration = run.log.duration
            self.stage.cursor.rest(moment)

    def _place(self, run: Run, value: float, is_share: bool) -> None:
        """Put the cursor where the address has it, and light up what it names."""
        cursor = self.stage.cursor
        cursor.duration = run.log.duration  # the stage's next tick may be late
        cursor.fit()
        cursor.seek(value * run.log.duration if is_share else value)
        self.stage.choose(self._pin)

    def where(self) -> dict[str, str]:
        """Where the cursor stands and what is lit up, for an address. Seconds of a virtual clock
        come again in another run; of a real one the share of the run does."""
        run, cursor = self.session.run, self.stage.cursor
        found = {"pin": self.stage.chosen} if self.stage.chosen else {}
        if run is None or run.state != "closed" or not cursor.duration:
            return found
        header = run.log.opened
        if header is not None and header.clock == "virtual":
            return {"at": f"{cursor.now:.6g}", **found}
        return {"at": f"{100 * cursor.now / cursor.duration:.4g}%", **found}

    def _tell(self, failure: str) -> None:
        """Show the sentence above the views; nothing for ""."""
        if self.fault.visible != bool(failure):
            text = f'<p style="color:var(--wb-wrong)">{escape(failure)}</p>'
            self.fault.param.update(object=text, visible=bool(failure))

    def tries(self) -> list[tuple[str, Callable[[], None]]]:
        """What to try: each label, and what sets the knobs to that interesting place."""
        return [(label, partial(self.turn, changes)) for label, changes in self.study.tries]

    def heading(self, row: Entry, aside: int = 0) -> Any:
        """Name, paper, what happens. `aside`: pixels left free at the right of the name."""
        paper = escape(row.paper) + (f" · arXiv {escape(row.arxiv)}" if row.arxiv else "")
        name = escape(self.study.title or row.title)
        long = ' class="long"' if len(name) > LONG_NAME else ""
        text = (
            f'<div class="top"><div class="name" style="padding-right:{aside + GAP}px">'
            f'<h1 title="{name}: {paper}"{long}>{name}</h1>'
            f'<div class="paper" title="{paper}">{paper}</div></div>'
            '<details><summary title="Press to read it whole, or two lines of it">'
            f"{prose(self.study.about)}</summary></details></div>"
        )
        return html(text, CSS, margin=(0, 0, 8, 0))

    def dark(self, on: bool) -> None:
        self.stage.dark(on)
        self.knobs.dark(on)
        self.maps.dark(on)


def views(stage: Stage) -> list[Any]:
    """The views, and the transport, which stays in sight at the foot of the page."""
    stage.hosted()
    stage.tick()  # so that the page arrives with a picture in it
    stage.transport.bar.styles = FOOT
    return [*map(stage.card, stage.feeds), stage.transport.bar]
