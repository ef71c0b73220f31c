"""The design page: fleets searched under a service-level objective, as they are played."""

import os
import threading
from contextlib import closing
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.distributed.fleet import Processes
from widgets.knobs.knobs import Knobs
from widgets.stage.stage import every
from workbench.catalogue import study
from workbench.fleet_search.asked import FleetSearch
from workbench.fleet_search.designs import fleet_of
from workbench.fleet_search.figure import pareto
from workbench.fleet_search.flags import launches
from workbench.fleet_search.play import Row
from workbench.fleet_search.search import Searched, search
from workbench.fleet_search.told import HEAD, asked_of, cells, notes, verdict
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, address, asked_knobs, carry, html
from workbench.pages.sizing.layout import TABS, lay_out, tabs
from workbench.pages.sizing.plan import CSS

PERIOD = 400  # milliseconds between looks at what has come
OPENS = "splitwise"  # the study whose page a design's run is opened on
LIMIT = 600.0  # seconds of one design
MORE = """
pre { background: var(--wb-raised); padding: 10px 12px; border-radius: 8px; overflow-x: auto;
  font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere; max-width: 1200px; margin: 0; }
td.num, th:not(:first-child) { text-align: right; }
h2 { margin: 18px 0 6px; } ul { margin: 8px 0; padding-left: 18px; }
"""


class Playing:
    """A search in a thread of its own: what is known, how it ended, and a way to end it."""

    def __init__(self, asked: FleetSearch) -> None:
        self.asked = asked
        self.found: Searched | None = None
        self.fault, self.steps, self.over = "", 0, False
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._play, name="fleet search", daemon=True)

    def start(self) -> "Playing":
        self.thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def _play(self) -> None:
        pool = Processes(os.cpu_count() or 1, LIMIT, self._stop)
        try:
            with closing(search(self.asked, pool)) as steps:
                for self.found in steps:
                    self.steps += 1
        except BadInput as fault:
            self.fault = str(fault)
        except Exception as fault:
            # In a thread nobody else hears of it: the page says so.
            self.fault = f"the search ended: {type(fault).__name__}: {fault}"
            raise
        finally:
            self.over = True


class DesignPage:
    """Knobs of what is asked left; the search, its table and its figure in the middle."""

    def __init__(self) -> None:
        self.shell = Shell("Design", "predict")
        self.config: Config = config_of(FleetSearch(), asked_knobs())
        self.knobs = Knobs(
            self, slug="workbench design", start=FleetSearch(), keep=("model", "device")
        )
        self.begin = pmui.Button(label="Search", variant="contained", margin=(4, 8, 4, 0))
        self.stop = pmui.Button(label="Stop", variant="outlined", margin=(4, 8, 4, 0))
        self.note = html(
            "<p class='faint'>Nothing is played yet: turn what is asked at the left, then search."
            "</p>", margin=(6, 4),
        )  # fmt: skip
        self.picture = pn.pane.Bokeh(None, margin=(8, 0), visible=False)
        self.table = html("", CSS + MORE)
        self.playing: Playing | None = None
        self._links: dict[int, str] = {}  # by a row's number
        self._shown: Any = None
        self.begin.on_click(lambda _: self.search())
        self.stop.on_click(lambda _: self.halt())
        self.shell.on_dark(self._dark)

    def become(self, config: Config) -> None:
        """Another question: the address says it, *Search* plays it."""
        self.config = config
        carry(self.shell.dark, **query_of(FleetSearch(), config))

    def search(self) -> None:
        """Play the designs of what is asked now; those of before are stopped."""
        self.halt()
        self._links = {}
        assert isinstance(self.config, FleetSearch)
        self.playing = Playing(self.config).start()

    def halt(self) -> None:
        if self.playing is not None:
            self.playing.stop()

    def look(self) -> None:
        """Show what has come since."""
        playing = self.playing
        now = (playing, playing.steps, playing.over) if playing is not None else None
        if playing is None or now == self._shown:
            return
        self._shown = now
        self.note.object = self._status(playing)
        self._draw()

    def _status(self, playing: Playing) -> str:
        if playing.fault:
            return f"<p class='wrong' style='color:var(--wb-wrong)'>{escape(playing.fault)}</p>"
        found = playing.found
        said = "Describing the designs …"
        if found is not None:
            played = len(found.rows) + len(found.again) + len(found.paced)
            played += found.alone is not None
            said = f"{played} of {found.total} played"
            if not playing.over:
                said += f" ({found.stage})"
            elif playing.stopped:
                said += ", stopped"
        return f"<p class='faint' role='status'>{escape(said)}</p>"

    def _draw(self) -> None:
        found = self.playing.found if self.playing is not None else None
        if found is None or not any(not row.failed for row in found.rows):
            self.picture.visible, self.table.object = False, ""
            return
        for number in range(len(self._links), len(found.rows)):
            self._links[number] = self._link(found, found.rows[number])
        made = pareto(found, self._links, dark=self.shell.dark)
        self.picture.param.update(object=made, visible=True)
        self.table.object = self._told(found, self._links)

    def _link(self, found: Searched, row: Row) -> str:
        """The page of a design's run, all its requests recorded."""
        try:
            played = fleet_of(found.asked, row.design)
        except BadInput:
            return ""
        config = played.model_copy(update={"tokens": True, "record_every": 1, "watch": 0})
        query = query_of(study(OPENS).config, config)
        return address("study", self.shell.dark, slug=OPENS, **query)

    def _told(self, found: Searched, links: dict[int, str]) -> str:
        kept = found.winner is not None
        front = found.front()
        rows = "".join(
            f"<tr><td class='words'>{escape(told[0])}</td>"
            + "".join(f"<td class='num'>{escape(cell)}</td>" for cell in told[1:])
            + f'<td><a href="{escape(links[found.rows.index(row)])}">open its run</a></td></tr>'
            for row, told in ((row, cells(found, row)) for row in front)
        )
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in (*HEAD, ""))
        which = "keep the objective and" if kept else "come nearest and"
        said = "".join(f"<li>{escape(note)}</li>" for note in notes(found))
        return (
            f"<p class='faint'>Asked: {escape(asked_of(found))}.</p><p>{escape(verdict(found))}</p>"
            f"<h2>Designs that {which} no other one beats</h2>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"{self._flags(found)}<ul class='faint small'>{said}</ul>"
        )

    def _flags(self, found: Searched) -> str:
        winner = found.winner
        if winner is None:
            return ""
        told = launches(found.asked, winner.design).items()
        return "".join(
            f"<h2>Start it with {escape(engine)}</h2><pre>{escape(chr(10).join(lines))}</pre>"
            for engine, lines in told
        )

    def _dark(self, on: bool) -> None:
        self.knobs.dark(on)
        self._links = {}  # addresses carry the theme
        self._draw()

    def page(self) -> Any:
        asked = self.config
        assert isinstance(asked, FleetSearch)
        head = html(
            f"{tabs('fleet', asked.model, asked.device, asked.devices, self.shell.dark)}"
            "<h1 tabindex='0'>Which fleet keeps the objective?</h1>"
            "<p class='faint'>Replicas, tensor ranks, prefill and decode pools, routers and limits "
            "on a step's tokens, each played on the virtual clock by the engine's own scheduler "
            "and cache, on all processors of this machine. Modelled.</p>",
            TABS,
        )
        buttons = pn.FlexBox(self.begin, self.stop, self.note, align_items="center")
        shown = pn.Column(buttons, self.picture, self.table, sizing_mode="stretch_width")
        page = lay_out(self.shell, self.knobs, head, shown, begin=lambda: every(PERIOD, self.look))
        pn.state.on_session_destroyed(lambda _: self.halt())
        return page
