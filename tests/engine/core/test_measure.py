"""Measures and trace export, against a log small enough to work out by hand."""

import json

import pytest

from engine.core.chrome.write import chrome_trace, save_chrome_trace
from engine.core.events import Branch, Level, Mark, Move, Opened, Span, Token, Told
from engine.core.log import Log
from engine.core.measure import busy, fullest, latency, peak, served, serving


@pytest.fixture
def log():
    return Log(
        [
            Opened(0.0, {}, "hand-made", 3),
            Branch(1.0, "r0", state="queued"),
            Branch(1.5, "r1", state="queued"),
            Branch(2.0, "r0", state="running"),
            Span(3.0, "r0", "prefill", 2.0, tag="0:100"),
            Span(3.0, "engine", "step", 2.0),
            Token(3.0, "r0", "a"),
            Branch(3.0, "r0", state="preempted"),
            Branch(3.5, "r0", state="running"),
            Span(4.0, "r0", "prefill", 3.5, tag="0:101"),
            Span(4.0, "engine", "step", 3.0),
            Token(4.0, "r0", "b"),
            Token(4.5, "r0", "x", accepted=False),
            Token(5.0, "r0", "c"),
            Level(5.0, "engine", "running", 1),
            Branch(5.0, "r0", state="finished"),
            Branch(5.0, "r1", state="rejected", why="too long"),
        ]
    )


def test_a_request_is_measured_from_its_events(log):
    r0 = served(log)["r0"]
    assert (r0.queued, r0.started, r0.ended, r0.outcome) == (1.0, 2.0, 5.0, "finished")
    assert r0.time_to_first_token == 2.0 and r0.time_per_output_token == 1.0
    assert r0.end_to_end == 4.0 and r0.preemptions == 1 and r0.prefilled == 201
    assert len(r0.tokens) == 3  # a refused draft is not a token
    r1 = served(log)["r1"]
    assert r1.outcome == "rejected" and r1.end_to_end is None and r1.time_to_first_token is None


def test_the_run_as_a_whole(log):
    run = serving(log)
    assert (run.requests, run.finished, run.tokens, run.preemptions) == (2, 1, 3, 1)
    assert run.makespan == 4.0 and run.tokens_per_second == 0.75
    assert busy(log, "engine") == 2.0 and peak(log, "running") == 1.0
    assert fullest(log, "nothing") is None
    assert fullest(log, "running") == min(e.time for e in log.of(Level) if e.value == 1.0)


def test_no_values_give_a_count_of_zero_not_a_number_from_nowhere():
    assert latency([]).count == 0
    assert latency([1.0, 3.0]).p50 == 2.0


def test_the_trace_is_chromes_format(log, tmp_path):
    log.emit(Mark(5.0, "cache", "evict", "page 3"))
    log.emit(Move(5.0, "device", "host", 10.0, 4.0))
    log.emit(Told(5.0, {"do": "stop"}))
    trace = json.loads(save_chrome_trace(log, tmp_path / "t.json").read_text())
    assert trace == json.loads(json.dumps(chrome_trace(log)))
    steps = [t for t in trace["traceEvents"] if t.get("name") == "step"]
    assert [(s["ph"], s["ts"], s["dur"]) for s in steps] == [("X", 2e6, 1e6), ("X", 3e6, 1e6)]
    lanes = {t["args"]["name"] for t in trace["traceEvents"] if t["ph"] == "M"}
    assert {"engine", "r0", "cache", "device to host", "person"} <= lanes
