"""Another tool's trace as a run: the views it has, the figures they give, and the way back."""

import gzip
import json

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from engine.core.chrome.read import read_chrome
from engine.core.chrome.write import chrome_trace, save_chrome_trace
from engine.core.errors import BadInput
from engine.core.events import Blob, Closed, Level, Mark, Opened
from engine.core.file import load, save
from engine.core.run import Run
from engine.core.spans import NAME, Spans
from engine.hardware.profiled import sheet_named
from widgets.fold import History
from widgets.view import view
from widgets.views.schedule.busy import Busy
from widgets.views.schedule.detail import MOST, reduce
from widgets.views.schedule.spans import union
from workbench.catalogue import study
from workbench.cli.main import main
from workbench.pages.suggested_views import suggested_views
from workbench.traces.read import open_log


def frame(log, name):
    return History(log, view(name).fold()).latest().frame()


def made(folder, entries, **head):
    path = folder / "trace.json"
    path.write_text(json.dumps({**head, "traceEvents": entries}))
    return path


def span(name, ts, dur, **more):
    return {"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """What torch's own profiler writes of two products, one of them nested in another call."""
    path = tmp_path_factory.mktemp("traces") / "torch.json"
    a, b = torch.randn(32, 48), torch.randn(48, 16)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as found:
        torch.matmul(a, b)
        torch.addmm(torch.zeros(16), a, b)
    found.export_chrome_trace(str(path))
    return path


def test_torchs_own_profile_shows_its_products_with_their_work(profiled):
    log = open_log(profiled)
    assert suggested_views(log)[:2] == ("schedule", "roofline")
    marks = frame(log, "roofline")["marks"]
    assert {mark["shape"] for mark in marks} == {"32x48x16"}
    spans = Spans.told(log.of(Blob)[-1], log.blobs, log.opened.facts)
    assert spans.flops.sum() == 2 * (2 * 32 * 48 * 16)
    assert set(np.unique(spans.bytes)) == {0.0, 4.0 * (32 * 48 + 48 * 16 + 32 * 16)}


def test_a_trace_is_a_run_in_time_order_that_a_file_keeps(tmp_path):
    counter = {"ph": "C", "name": "memory", "pid": 1, "tid": 2, "ts": 15, "args": {"value": 7}}
    moment = {"ph": "i", "name": "step", "pid": 1, "tid": 2, "ts": 99}
    log = open_log(made(tmp_path, [span("a", 10, 20), span("b", 12, 3), counter, moment, 5]))
    assert [type(event) for event in log] == [Opened, Level, Blob, Mark, Mark, Closed]
    times = [event.time for event in log]
    assert times == sorted(times)
    assert log.of(Mark)[-1].text == "1 entries could not be read"
    assert load(save(log, tmp_path / "kept.run")) == log


def test_columns_and_events_of_the_same_spans_draw_the_same(tmp_path):
    draw = np.random.default_rng(5)
    rows = [
        span(f"op {draw.integers(5)}", int(t), int(draw.integers(1, 40)), tid=int(draw.integers(3)))
        for t in draw.integers(0, 2000, 300)
    ]
    log = open_log(made(tmp_path, rows))
    single = type(log)([log[0], *_singly(log), log[-1]])
    one, other = frame(log, "schedule"), frame(single, "schedule")
    assert one["figures"] == other["figures"]
    for name in ("span_start", "span_stop"):
        assert np.allclose(one[name], other[name])
    named = [[f["names"][row] for row in f["span_row"]] for f in (one, other)]
    assert named[0] == named[1]


def _singly(log):
    return Spans.told(log.of(Blob)[0], log.blobs, log.opened.facts).events()


@pytest.mark.parametrize("count", [0, 1, 2, 50, 500])
def test_the_union_of_spans_is_what_adding_them_one_by_one_gives(count):
    draw = np.random.default_rng(count)
    start = draw.uniform(0, 100, count)
    stop = start + draw.exponential(0.2, count)
    order = np.argsort(stop)
    busy = Busy()
    for begun, ended in zip(start[order], stop[order], strict=True):
        busy.add(begun, ended)
    starts, stops = union(start, stop)
    assert np.allclose(starts, busy.starts) and np.allclose(stops, busy.stops)


def test_more_spans_than_a_screen_holds_are_put_together(tmp_path):
    log = open_log(made(tmp_path, [span("a", 10 * n, 9) for n in range(2 * MOST)]))
    sent = reduce(frame(log, "schedule"), {})
    assert sent["total"] == 2 * MOST and len(sent["span_row"]) <= MOST
    assert sent["span_count"].sum() == 2 * MOST


def test_a_known_device_puts_its_roofs_over_the_work(tmp_path):
    log = open_log(made(tmp_path, [span("a", 0, 1)], deviceProperties=[{"name": "NVIDIA H200"}]))
    assert {roof["device"] for roof in log.opened.facts["roofs"]} == {"h200-sxm"}
    assert open_log(made(tmp_path, [span("a", 0, 1)])).opened.facts.get("roofs") is None


@pytest.mark.parametrize(
    ("called", "sheet"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA GeForce GTX 1080", None),
    ],
)
def test_a_driver_name_finds_its_data_sheet(called, sheet):
    found = sheet_named(called)
    assert (found.slug if found else None) == sheet


def test_there_and_back_again_keeps_every_span(tmp_path, capsys):
    path = made(tmp_path, [span("a", 10, 20), span("b", 12, 3)])
    assert main(["trace", str(path)]) == 0
    run = tmp_path / "trace.run"
    assert str(run) in capsys.readouterr().out
    spans = [e for e in chrome_trace(load(run))["traceEvents"] if e["ph"] == "X"]
    assert sorted((e["name"], round(e["ts"]), round(e["dur"])) for e in spans) == [
        ("a", 0, 20),
        ("b", 2, 3),
    ]


def test_a_trace_exported_here_opens_as_the_run_it_was_with_all_its_views(tmp_path):
    chosen = study("flover")
    few = chosen.configured({"executor": "modelled", "workload.count": 3})
    log = Run.execute(chosen.driver, few, study="flover").log
    path = save_chrome_trace(log, tmp_path / "mine.json")
    back = open_log(path)
    assert list(back) == list(log)
    assert suggested_views(back) == chosen.views
    packed = tmp_path / "mine.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(open_log(packed)) == list(log)
    assert read_chrome(path).spans.start.size > 0  # what others read of it
    text = path.read_text(encoding="utf-8")
    for wrong in (
        text.replace('Run": "', 'Run": "AAAA', 1),
        text.replace('Run": "', 'Run": "*', 1),
    ):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(BadInput, match="the run in it"):
            open_log(path)


def test_a_trace_is_not_written_over_itself(tmp_path, capsys):
    path = made(tmp_path, [span("a", 10, 20)])
    assert main(["trace", str(path), "-o", str(path)]) == 2
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [{}, {NAME: 3}, {NAME: {"lanes": ["a"], "names": [], "tags": [""]}}, {NAME: {"lanes": None}}],
)
def test_columns_of_a_damaged_run_draw_what_can_be_understood(tmp_path, words):
    log = open_log(made(tmp_path, [span("a", 10, 20)]))
    log.events[0] = Opened(0.0, {}, facts=words)
    assert frame(log, "schedule")["empty"]
    log.blobs[NAME] = np.full((7, 2), np.nan)
    assert frame(log, "schedule")["empty"]
    log.blobs.clear()
    assert frame(log, "schedule")["empty"]
