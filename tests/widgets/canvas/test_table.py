"""A view's data as CSV: all of it, under the names of its axes, with units."""

import csv
import io

import pytest

from tests.widgets.made_runs import serving
from tests.widgets.views.schedule.made import log as made_log
from tests.widgets.views.schedule.made import pipeline, span
from widgets.canvas import table
from widgets.canvas.table import TABLES
from widgets.view import view


def tables(name, log):
    """What the drawing of that view would hand out of the whole run: title -> (headings, rows)."""
    drawing, one = view(name).draw(), view(name)
    fold = one.fold()
    for event in log.events:
        fold.add(event)
    drawing.show(fold.frame(), log.duration)
    found = {}
    for part in drawing.data().split("\n\n"):
        (title,), headings, *rows = csv.reader(io.StringIO(part.strip("\n")))
        found[title] = (headings, rows)
    return found


def test_every_token_is_there_though_the_browser_has_fewer(monkeypatch):
    monkeypatch.setattr("widgets.views.request_lanes.detail.MOST", 20)
    log = serving(requests=6)
    headings, rows = tables("request_lanes", log)["tokens"]
    assert headings == ["request", "time (s)"]
    said = [event for event in log.events if type(event).__name__ == "Token"]
    assert 20 < len(rows) <= len(said)
    assert {name for name, _ in rows} <= {event.thread for event in said}
    headings, _ = tables("request_lanes", log)["requests"]
    assert headings == ["request", "arrived (s)", "ended (s)", "outcome", "reason"]


def test_a_schedule_names_lanes_and_work_and_says_units():
    found = tables("schedule", pipeline(2, 3, memory=True))
    headings, rows = found["spans"]
    assert headings[:2] == ["lane", "work"] and "from (s)" in headings and "to (s)" in headings
    assert len(rows) == 12 and rows[0][:2] == ["rank 0", "F"]
    headings, rows = found["memory"]
    assert headings == ["lane", "kind", "time (s)", "held (B)"] and rows[0][1] == "activations"


@pytest.mark.parametrize("name", ["levels", "latency", "page_map", "token_river", "threads"])
def test_a_view_says_its_units_and_no_internal_names(name):
    for headings, rows in tables(name, serving(requests=5)).values():
        assert rows and not any("_" in heading for heading in headings)
        assert all(len(row) == len(headings) for row in rows)


def test_a_chart_gives_its_lines_whole():
    found = tables("levels", serving(requests=5))
    headings, rows = found["Cache pages"]
    assert headings == ["line", "time (s)", "y"] and {"used", "cached"} <= {row[0] for row in rows}
    waits, _ = tables("latency", serving(requests=5))["Time to first token"]
    assert waits == ["line", "Time to first token (s)", "y (share)"], "no moments of the run"


def test_text_that_a_spreadsheet_would_compute_stays_text_and_long_tables_say_so(monkeypatch):
    log = made_log(span("=cmd()", "F", 0.0, 1.0), lanes=["=cmd()"])
    assert tables("schedule", log)["spans"][1][0][0] == "'=cmd()"
    monkeypatch.setattr(table, "MOST", 2)
    last = tables("schedule", pipeline(2, 3))["spans"][1][-1]
    assert last == ["only the first 2 rows"]


def test_keys_of_all_tables_are_columns_of_their_frames():
    for name, known in TABLES.items():
        fold = view(name).fold()
        for event in (pipeline(2, 2, memory=True) if name == "schedule" else serving()).events:
            fold.add(event)
        frame = fold.frame()
        missing = {key for _, columns in known for _, key, _ in columns if key not in frame}
        # Those of messages and gaps come with runs that have some.
        assert all(key.startswith(("move_", "gap_")) for key in missing), (name, missing)
