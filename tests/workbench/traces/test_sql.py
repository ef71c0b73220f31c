"""SQL over runs and traces: what is asked is what the log holds, and only reading is done."""

import json
import os
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.core.errors import BadInput
from engine.core.events import Level, Span, Token
from engine.core.file import save
from engine.core.run import Run
from tests.engine.core.chrome.traced import waits, written
from tests.workbench.toy import Ticks, tick
from workbench import open_study
from workbench.cli.main import main
from workbench.traces import sql
from workbench.traces.read import open_log
from workbench.traces.sql import TABLES, asked


@pytest.fixture(scope="module")
def log():
    return Run.execute(tick, Ticks(count=40), study="toy").log


def test_what_is_asked_is_what_the_log_holds(log):
    assert asked(log, "SELECT count(*) FROM tokens").rows == [(len(list(log.of(Token))),)]
    ((total,),) = asked(log, "SELECT sum(seconds) FROM spans WHERE name = 'step'").rows
    assert total == pytest.approx(sum(s.time - s.start for s in log.of(Span)))
    peak = asked(log, "SELECT name, max(value) AS most FROM levels GROUP BY name")
    assert peak.columns == ("name", "most")
    assert peak.rows == [("running", max(level.value for level in log.of(Level)))]
    for table, columns in TABLES.items():
        assert asked(log, f"SELECT * FROM {table} LIMIT 1").columns == columns


def test_a_trace_s_spans_lie_there_with_their_categories(tmp_path):
    log = open_log(written(tmp_path, waits()))
    found = asked(log, "SELECT category, count(*) FROM spans GROUP BY category")
    assert dict(found.rows) == {"compute": 7, "memory": 1, "host": 7}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("DELETE FROM spans", "only reading"),
        ("INSERT INTO marks VALUES (1, 2, 3, 4)", "only reading"),
        ("ATTACH '/tmp/other.db' AS other", "only reading"),
        ("PRAGMA writable_schema = ON", "only reading"),
        ("CREATE TABLE more (a)", "only reading"),
        ("VACUUM INTO '/tmp/other.db'", "only reading"),
        ("SELECT load_extension('/tmp/x.so')", "not authorized|only reading|no such function"),
        ("SELECT 1; DELETE FROM spans", "one statement"),
        ("SELECT * FROM spams", "there are spans"),
        ("SELECT nothing FROM spans", "there are spans"),
        ("", "give a SELECT"),
        ("SELECT 1 \0", "null character|unrecognized token"),
        ("SELECT zeroblob(200000000)", "too big"),
        ("SELECT printf('%.*c', 2000000000, 'a')", "printf"),  # 43 s in one call, past any clock
        ("SELECT trim(replace(hex(zeroblob(90000)), '0', 'a'), 'ba')", "trim"),
        ("SELECT \ud800", "surrogates|encode"),
    ],
)
def test_anything_but_reading_is_refused_in_a_line(log, query, says):
    with pytest.raises(BadInput, match=says) as fault:
        asked(log, query)
    assert "\n" not in str(fault.value)


def test_an_endless_statement_ends(log):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    begun = time.thread_time()
    with pytest.raises(BadInput, match="took over"):
        asked(log, f"{endless} SELECT sum(x) FROM n", seconds=0.2)
    assert time.thread_time() - begun < 60
    found = asked(log, f"{endless} SELECT x FROM n")
    assert found.is_cut and len(found.rows) == sql.MOST_ROWS


def test_a_statement_that_others_keep_from_the_processor_is_answered(log, monkeypatch):
    clock = count(0, 3600)  # an hour goes by between two looks
    busy = SimpleNamespace(monotonic=lambda: next(clock), thread_time=time.thread_time)
    monkeypatch.setattr(sql, "time", busy)
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 99999)"
    assert asked(log, f"{many} SELECT count(*) FROM n").rows == [(99_999,)]


def test_one_call_cannot_outlast_the_clock(log):
    """Nothing looks at the clock within a call of a function: its values are small instead."""
    half = "replace(hex(zeroblob(60000)), '0', 'a')"
    begun = time.process_time()
    assert asked(log, f"SELECT instr({half} || {half}, {half} || 'b')").rows == [(0,)]
    assert time.process_time() - begun < 10
    with pytest.raises(BadInput, match="too big"):
        asked(log, "SELECT instr(hex(zeroblob(500000)), 'b')")


def test_an_answer_of_large_values_is_refused_before_it_is_held(log, monkeypatch):
    monkeypatch.setattr(sql, "HELD", 1 << 20)
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    with pytest.raises(BadInput, match="over 1 MiB"):
        asked(log, f"{many} SELECT hex(zeroblob(50000)) FROM n")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="Linux tells open files")
def test_sorting_writes_nothing_to_the_disk(log):
    """More than SQLite's page cache is sorted while this process's open files are looked at."""
    opened, over = set(), threading.Event()

    def look():
        while not over.wait(0.002):
            for file in Path("/proc/self/fd").iterdir():
                with suppress(OSError):
                    opened.add(os.readlink(file))

    watch = threading.Thread(target=look)
    watch.start()
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 60000) "
    asked(log, f"{rows} SELECT hex(zeroblob(200)) AS k, x FROM n ORDER BY k, x DESC LIMIT 59000, 1")
    over.set()
    watch.join()
    assert not [name for name in opened if "etilqs" in name]


def test_too_many_events_are_refused_before_they_are_copied(log, monkeypatch):
    monkeypatch.setattr(sql, "MOST_EVENTS", 10)
    monkeypatch.setattr(sql, "_fill", None)
    with pytest.raises(BadInput, match="at most 10"):
        asked(log, "SELECT 1")


def test_the_command_prints_a_table_or_json(log, tmp_path, capsys):
    path = str(save(log, tmp_path / "toy.run"))
    query = "SELECT name, count(*) AS times FROM spans GROUP BY name"
    assert main(["trace", path, "--sql", query]) == 0
    assert capsys.readouterr().out.split() == ["name", "times", "step", "40"]
    assert main(["trace", path, "--sql", query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [["step", 40]]
    assert main(["trace", path, "--sql", "DROP TABLE spans"]) == 2


def test_a_notebook_asks_the_newest_run():
    study = open_study("flover", executor="modelled", workload__count=3)
    frame = study.sql("SELECT thread, count(*) AS tokens FROM tokens GROUP BY thread")
    assert list(frame.columns) == ["thread", "tokens"] and len(frame) == 3
    assert frame["tokens"].sum() == len(list(study.log.of(Token)))
