"""Chrome traces read in: what profilers write, in pieces of any size, whole and damaged."""

import gzip
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from engine.core.chrome import pieces
from engine.core.chrome.read import MOST_DEVICES, read_chrome
from engine.core.chrome.work import Done, Work
from engine.core.errors import BadInput
from workbench.traces.read import open_log


def span(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, **more}


def written(folder: Path, entries: list[Any], **head: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({**head, "traceEvents": entries, "displayTimeUnit": "ms"}, indent=1))
    return path


MANY = [span(f"op {n % 7}", 1e9 + 10 * n, 5 + n % 3, args={"x": [{"a": 1}, {"b": n}]}) for n in
        range(500)]  # fmt: skip


def test_spans_come_in_order_of_their_ends_in_seconds_from_the_first(tmp_path):
    trace = read_chrome(written(tmp_path, [span("late", 30, 4), span("early", 10, 50)]))
    names = [trace.spans.names[place] for place in trace.spans.name]
    assert names == ["late", "early"]
    assert trace.spans.start == pytest.approx([20e-6, 0.0])
    assert trace.spans.stop == pytest.approx([24e-6, 50e-6])
    assert trace.notes == []


@pytest.mark.parametrize("piece", [64, 1000, 4096, 1 << 20])
def test_the_size_of_a_piece_changes_nothing(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(pieces, "PIECE", piece)
    trace = read_chrome(written(tmp_path, MANY, deviceProperties=[{"name": "NVIDIA H200"}]))
    assert len(trace.spans) == 500 and trace.notes == [] and trace.devices == ["NVIDIA H200"]
    assert trace.spans.start == pytest.approx([10e-6 * n for n in range(500)])
    assert (trace.spans.stop - trace.spans.start) == pytest.approx(
        [(5 + n % 3) * 1e-6 for n in range(500)], abs=1e-12
    )


def test_a_packed_trace_and_a_bare_list_read_the_same(tmp_path):
    plain = read_chrome(written(tmp_path, MANY)).spans
    packed, bare = tmp_path / "trace.json.gz", tmp_path / "bare.json"
    packed.write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    bare.write_text(json.dumps(MANY))
    for path in (packed, bare):
        other = read_chrome(path).spans
        assert np.array_equal(plain.stop, other.stop) and plain.names == other.names


def test_beginnings_and_ends_nest_within_a_lane(tmp_path):
    def half(ph: str, ts: float, name: str = "") -> dict[str, Any]:
        return {"ph": ph, "name": name, "pid": 1, "tid": 1, "ts": ts}

    rows = [half("E", 0), half("B", 1, "out"), half("B", 2, "in"), half("E", 5), half("E", 9)]
    trace = read_chrome(written(tmp_path, [*rows, half("B", 10, "never")]))
    names = [trace.spans.names[place] for place in trace.spans.name]
    assert names == ["in", "out"]
    assert trace.spans.stop - trace.spans.start == pytest.approx([3e-6, 8e-6])
    assert trace.notes == ["2 spans have a beginning or an end only"]


def test_lanes_are_called_as_the_trace_calls_them(tmp_path):
    def called(what: str, tid: int, **args: str) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": 1, "tid": tid, "args": args}

    rows = [
        called("process_name", 0, name="python"),
        called("process_labels", 0, labels="GPU 0"),
        called("thread_name", 7, name="stream 7"),
    ]
    trace = read_chrome(written(tmp_path, [*rows, span("a", 0, 1, tid=7), span("b", 0, 1, tid=8)]))
    assert trace.spans.lanes == ["GPU 0, stream 7", "GPU 0, thread 8"]


def test_counters_and_moments(tmp_path):
    rows = [
        {"ph": "C", "name": "memory", "pid": 1, "tid": 0, "ts": 5, "args": {"free": 3, "used": 4}},
        {"ph": "i", "name": "step", "pid": 1, "tid": 0, "ts": 9, "s": "g"},
        span("a", 4, 1),
    ]
    trace = read_chrome(written(tmp_path, rows))
    assert [(round(t * 1e6), name, value) for t, _, name, value in trace.levels] == [
        (1, "memory free", 3.0),
        (1, "memory used", 4.0),
    ]
    assert [(round(t * 1e6), name) for t, _, name in trace.marks] == [(5, "step")]


def test_counted_work_goes_to_the_longest_kernel_of_its_operation(tmp_path):
    def count(name: str, dims: Any, types: Any) -> Done:
        return Done(float(dims[0][0]), 8.0, f"dtype={types[0]}")

    shapes = {"Input Dims": [[6]], "Input type": ["float"]}
    rows = [
        span("mm", 0, 2, args={"External id": 5, **shapes}),
        span("short kernel", 3, 1, tid=7, cat="kernel", args={"External id": 5}),
        span("long kernel", 5, 3, tid=7, cat="kernel", args={"External id": 5}),
        span("mm", 20, 2, args={"External id": 6, **shapes}),
        span("mm", 30, 2, args={"Input Dims": "no"}),
    ]
    spans = read_chrome(written(tmp_path, rows), Work(frozenset({"mm"}), count)).spans
    found = [
        (spans.names[n], flops, spans.tags[t])
        for n, flops, t in zip(spans.name, spans.flops, spans.tag, strict=True)
        if flops
    ]
    assert found == [("long kernel", 6.0, "dtype=float"), ("mm", 6.0, "dtype=float")]


DAMAGED = {
    "a number as text": ([span("a", 0, 1), span("b", "3.5", "2")], 2, 0),
    "not a number": ([span("a", 0, 1), span("b", "soon", 1)], 1, 1),
    "an entry that is a list": ([span("a", 0, 1), [1], span("b", 3, 1)], 2, 1),
    "null": ([None, span("a", 0, 1)], 1, 1),
    "a time below zero": ([span("a", 0, 1), span("b", 1, -1)], 1, 0),
    "half a pair": ([span("\ud800", 0, 1)], 1, 0),
    "nothing": ([], 0, 0),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_entry_is_left_out_and_said(tmp_path, name):
    entries, kept, left_out = DAMAGED[name]
    trace = read_chrome(written(tmp_path, entries))
    assert len(trace.spans) == kept
    said = [note for note in trace.notes if "could not be read" in note]
    assert len(said) == bool(left_out)
    json.dumps(trace.spans.words()).encode()


def test_entries_of_kinds_that_are_not_drawn_are_counted(tmp_path):
    others = [{"ph": ph, "name": "x", "ts": 1, "id": 1} for ph in ["b", "n", "e", "s", "f", "Q"]]
    named = [{"ph": "M", "name": "process_sort_index", "args": {"sort_index": 1}}]
    counts = [{"ph": "C", "name": "c", "ts": 2, "args": {"a": "high"}}, {"ph": "C", "ts": 2}]
    trace = read_chrome(written(tmp_path, [span("a", 0, 1), *others, *named, *counts]))
    assert trace.notes == [
        "8 entries are of kinds not drawn (3 asynchronous, 2 counters without a number, "
        "2 of flow arrows, 1 of no known kind)"
    ]


@pytest.mark.parametrize("dur", [{}, {"dur": None}, {"dur": -1}])
def test_a_span_without_a_length_is_counted_not_taken_as_one_of_none(tmp_path, dur):
    bare = {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": 5, **dur}
    trace = read_chrome(written(tmp_path, [span("a", 0, 1), bare, span("c", 9, 0)]))
    assert [trace.spans.names[n] for n in trace.spans.name] == ["a", "c"]
    assert trace.notes == ["1 entries have no time or length that can be kept"]


def test_a_span_that_ends_before_it_began_is_counted(tmp_path):
    halves = [("B", 5), ("B", 6), ("E", 7), ("E", 4)]
    trace = read_chrome(written(tmp_path, [{"ph": p, "name": "b", "ts": t} for p, t in halves]))
    assert len(trace.spans) == 1
    assert trace.notes == ["1 entries have no time or length that can be kept"]


def test_a_head_that_names_very_many_devices_is_read_soon(tmp_path):
    devices = [{"name": f"a device {n % 3000}"} for n in range(200_000)]
    path, begun = written(tmp_path, [span("a", 0, 1)], deviceProperties=devices), process_time()
    assert len(open_log(path).opened.machine["devices"]) == MOST_DEVICES
    assert process_time() - begun < 10


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_cut_short_gives_what_is_whole_of_it(tmp_path, share, packed):
    data = written(tmp_path, MANY).read_bytes()
    data = gzip.compress(data) if packed else data
    path = tmp_path / "cut.json"
    path.write_bytes(data[: int(len(data) * share)])
    trace = read_chrome(path)
    assert 0 < len(trace.spans) < 500 or share > 0.99
    assert any("ends in the middle" in note for note in trace.notes)


def test_infinite_and_missing_times_do_not_get_in(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [{"ph":"X","name":"a","ts":NaN,"dur":1},'
                    '{"ph":"X","name":"b","ts":1,"dur":Infinity},'
                    '{"ph":"X","name":"d","ts":-1e308,"dur":1},{"ph":"C","name":"e","ts":9e30},'
                    '{"ph":"X","name":"c","ts":1,"dur":2}]}')  # fmt: skip
    trace = read_chrome(path)
    assert np.isfinite(trace.spans.stop).all()
    assert [trace.spans.names[n] for n in trace.spans.name] == ["c"]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"PAR1", b"hello", b'{"a": 1}', b"\x1f\x8b\x08broken", b"\x00" * 100]
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path, data):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises(BadInput, match="not a Chrome trace"):
        read_chrome(path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        read_chrome(tmp_path / "none.json")


def test_a_lane_that_only_counts_takes_nobody_elses_name(tmp_path):
    counter = {"ph": "C", "name": "memory", "pid": 9, "tid": 1, "ts": 0, "args": {"v": 3}}
    trace = read_chrome(written(tmp_path, [counter, span("a", 1, 5), span("b", 2, 5, tid=6)]))
    assert [event.lane for event in trace.spans.events()] == ["thread 2", "thread 6"]


def test_values_that_are_no_entries_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "FRUITLESS", 100 * pieces.NOTHING)
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b"0" * 1000 + b"]")
    read = pieces.Pieces(path)
    assert not any(read) and read.cut and read.left_out == 101
