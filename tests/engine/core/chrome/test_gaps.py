"""What a stream waited for, and the launches that tell it."""

import pytest

from engine.core.chrome.gaps import CAUSES, gaps, waited
from engine.core.chrome.launches import NAME, told
from engine.core.chrome.read import read_chrome
from engine.core.events import Blob
from engine.core.file import load, save
from tests.engine.core.chrome.traced import waits, written
from workbench.traces.read import open_log


def test_each_part_of_a_gap_has_its_cause(tmp_path):
    trace = read_chrome(written(tmp_path, waits()))
    found = gaps(trace.spans, trace.categories, trace.device_of, trace.launched_by)
    names = [trace.spans.names[trace.spans.name[row]] for row in found.before]
    rows = [
        (name, CAUSES[cause], round((stop - start) * 1e6, 6))
        for name, cause, start, stop in zip(
            names, found.cause, found.start, found.stop, strict=True
        )
    ]
    assert rows == [
        ("add", "launch", 10), ("add", "starting", 10), ("mul", "data", 20), ("mul", "starting", 2),
        ("relu", "another stream", 15), ("tanh", "starting", 7), ("alone", "unknown", 20),
    ]  # fmt: skip
    longest, *_ = waited(found)
    assert (longest.cause, longest.count) == ("data", 1)
    assert sum(w.seconds for w in waited(found)) == pytest.approx(84e-6)


def test_launches_are_kept_by_a_file_and_a_damaged_one_has_none(tmp_path):
    log = open_log(written(tmp_path, waits()))
    [event] = [blob for blob in log.of(Blob) if blob.name == NAME]
    again = load(save(log, tmp_path / "kept.run"))
    by = told(event, again.blobs, event.shape[0])
    assert (by >= 0).sum() == 7 and (by == log.blobs[NAME]).all()
    assert (told(event, again.blobs, 3) == -1).all()
    assert (told(event, {}, 3) == -1).all()
