"""Run files: what is saved opens again identical; anything else gives one clear line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import events as e
from engine.core import file
from engine.core.errors import BadInput
from engine.core.file import MOMENTS, PLACES, load, save
from engine.core.log import Log

text = st.text(max_size=12)
number = st.floats(allow_nan=False, width=64)
moment = st.floats(-MOMENTS, MOMENTS)
whole, place = st.integers(-PLACES, PLACES), st.integers(0, PLACES)
plain = st.dictionaries(text, st.one_of(st.none(), st.booleans(), whole, text), max_size=3)
ANY_EVENT = st.one_of(
    st.builds(e.Opened, moment, plain, text, whole, text, plain, plain, st.just(1)),
    st.builds(e.Span, moment, text, text, moment, number, number, text),
    st.builds(e.Level, moment, text, text, number),
    st.builds(e.Mark, moment, text, text, text),
    st.builds(e.Token, moment, text, text, number, st.booleans()),
    st.builds(e.Branch, moment, text, text, text, text),
    st.builds(e.Page, moment, place, text, st.just("take"), place, place, place, text),
    st.builds(e.Move, moment, text, text, number, moment, text),
    st.builds(e.Route, moment, text, st.lists(whole, max_size=4)),
    st.builds(e.Blob, moment, text, text, st.lists(whole, max_size=3)),
    st.builds(e.Told, moment, plain),
    st.builds(e.Closed, moment, text),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY_EVENT, min_size=1, max_size=30))
def test_a_saved_run_opens_again_identical_event_for_event(tmp_path_factory, events):
    path = tmp_path_factory.mktemp("run") / "x.run"
    log = Log(events)
    log.blobs["a"] = np.arange(6, dtype=np.float32).reshape(2, 3)
    again = load(save(log, path))
    assert again.events == log.events
    assert again == log and again.blobs["a"].dtype == np.float32


@pytest.fixture
def saved(tmp_path):
    log = Log([e.Opened(0.0, {}), *(e.Span(float(i), "a", "b", i - 0.5) for i in range(500))])
    return save(log, tmp_path / "a.run")


def test_every_truncation_gives_one_clear_line(saved, tmp_path):
    whole = saved.read_bytes()
    cut = tmp_path / "cut.run"
    for size in (*range(0, 64, 7), *range(64, len(whole), len(whole) // 40)):
        cut.write_bytes(whole[:size])
        with pytest.raises(BadInput, match=r"cut\.run: not a whole run") as fault:
            load(cut)
        assert "\n" not in str(fault.value)


def test_a_flipped_byte_is_refused_or_changes_nothing(saved, tmp_path):
    whole, sound = bytearray(saved.read_bytes()), load(saved)
    random = np.random.default_rng(0)
    bad = tmp_path / "bad.run"
    refused = 0
    for _ in range(60):
        copy = bytearray(whole)
        copy[int(random.integers(len(copy)))] ^= int(random.integers(1, 256))
        bad.write_bytes(copy)
        try:
            assert load(bad) == sound
        except BadInput:
            refused += 1
    assert refused > 0


def test_a_run_without_checksums_as_runs_of_before_opens(saved, tmp_path, monkeypatch):
    monkeypatch.setitem(file.WRITTEN, "write_page_checksum", False)
    sound = load(saved)
    before = save(sound, tmp_path / "before.run")
    assert before.read_bytes() != saved.read_bytes() and load(before) == sound


def test_foreign_files_are_refused_by_name(tmp_path):
    other = tmp_path / "other.run"
    pq.write_table(pa.table({"a": [1]}), other)
    with pytest.raises(BadInput, match="not a run"):
        load(other)
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "none.run")
    with pytest.raises(BadInput, match="not a plain file"):
        load(tmp_path)


def test_a_run_of_another_version_is_refused(saved, tmp_path):
    table = pq.read_table(saved)
    marked = table.replace_schema_metadata({b"parallel-workbench": b'{"version": 99, "events": 1}'})
    pq.write_table(marked, tmp_path / "v.run")
    with pytest.raises(BadInput, match="another version"):
        load(tmp_path / "v.run")


def test_the_file_reads_without_this_project(saved):
    table = pq.read_table(saved)
    spans = table.filter(pa.compute.equal(table["event"].cast(pa.string()), "span"))
    assert spans.num_rows == 500 and {"time", "lane", "name", "start"} <= set(table.column_names)


def test_a_failed_write_leaves_no_half_file(tmp_path):
    with pytest.raises(BadInput, match="cannot write"):
        save(Log([e.Closed(0.0, "x")]), tmp_path / "no" / "such" / "place.run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "event",
    [e.Span(1.0, "a", "b", float("nan")), e.Span(1.0, "a", "b", -1e300), e.Mark(1e18, "a", "b"),
     e.Move(1.0, "a", "b", 1.0, float("-inf")), e.Page(1.0, 2**31, "a", "take"),
     e.Page(1.0, 0, "a", "take", 2**62), e.Page(1.0, 0, "a", "take", 0, 0, -2),
     e.Token(1.0, "a", "b", branch=-1)],
)  # fmt: skip
def test_numbers_that_no_view_can_place_are_refused(tmp_path, event):
    path = save(Log([e.Opened(0.0, {}), event]), tmp_path / "a.run")
    with pytest.raises(BadInput, match=r"a damaged run file \(\w+ \w+: a? ?n"):
        load(path)


@pytest.mark.parametrize("kind", ["c16", "M8[s]", "m8[s]", "V3"])
def test_arrays_of_what_is_no_number_and_no_text_are_refused(tmp_path, kind):
    log = Log([e.Opened(0.0, {})])
    log.blobs["x"] = np.zeros(3, kind)
    with pytest.raises(BadInput, match="an array of neither numbers nor texts"):
        load(save(log, tmp_path / "a.run"))


@pytest.mark.parametrize("order", [[2, 0, 1], [0, 2, 1], [0, 1, 2]], ids=str)
def test_arrays_may_stand_anywhere_among_the_events(tmp_path, order):
    log = Log()
    log.emit(e.Opened(0.0, {}))
    log.emit(e.Closed(1.0, "finished"))
    log.blobs["a"] = np.arange(3)
    path = save(log, tmp_path / "a.run")
    table = pq.read_table(path)
    pq.write_table(table.take(order), path)
    found = load(path)
    assert list(found) == list(log) and (found.blobs["a"] == np.arange(3)).all()
