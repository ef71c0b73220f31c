"""Frames as bytes, and canvas views in their hosts."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

from engine.core.errors import BadInput
from tests.widgets.made_runs import serving
from widgets.canvas import drawing as canvas
from widgets.canvas.drawing import CanvasDrawing
from widgets.canvas.packing import body, pack, unpack
from widgets.export import replay
from widgets.export.replay import moments, static_html, static_view
from widgets.view import View, view

VIEWS = (
    "page_map",
    "request_lanes",
    "token_river",
    "chart",
    "curves",
    "roofline",
    "schedule",
    "threads",
    "topology",
)


def test_a_frame_unpacks_as_it_was_packed():
    frame = {
        "name": "héllo </script>",
        "none": None,
        "nested": {"a": [1, 2.5, "x"]},
        "bytes": np.arange(7, dtype=np.uint8),
        "floats": np.array([[0.5, -1.5], [3.0, np.inf]]),
        "empty": np.zeros(0, np.float32),
        "flags": np.array([True, False]),
        "wide": np.array([-5, 2**31 - 1]),
        "wider": np.array([2**40]),
        "half": np.array([0.5], np.float16),
        "big-endian": np.array([1, 258], ">i4"),
        "strided": np.arange(10, dtype=np.int32)[::3],
    }
    back = unpack(pack(frame))
    assert back.keys() == frame.keys()
    for name, value in frame.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(back[name], value)
            assert back[name].shape == value.shape
        else:
            assert back[name] == value
    assert back["wide"].dtype == np.int32 and back["wider"].dtype == np.float64


def test_arrays_start_at_multiples_of_eight_whatever_the_header():
    for length in range(20):
        data = pack({"text": "é" * length, "a": np.zeros(3, np.uint8), "b": np.arange(4.0)})
        assert body(data) % 8 == 0
        head = json.loads(data[4 : body(data)])
        assert all(offset % 8 == 0 for _, _, offset in head["arrays"].values())


def test_numbers_that_are_not_finite_become_null():
    assert unpack(pack({"x": float("nan"), "y": [float("inf")]})) == {"x": None, "y": [None]}


def test_an_array_of_objects_is_refused():
    with pytest.raises(TypeError):
        pack({"x": np.array([{}], object)})


@pytest.mark.parametrize("name", VIEWS)
def test_every_script_is_one_module_that_asks_for_nothing_outside(name):
    text = canvas.source(name)
    assert text.count("export default") == 1
    text = text.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"^\s*import\b|\bfetch\(|XMLHttpRequest|WebSocket|https?://", text, re.M)
    assert "innerHTML" not in text and "insertAdjacentHTML" not in text and "eval(" not in text
    assert "</" not in text, "would end an inline script"


def test_a_view_without_a_script_says_so():
    with pytest.raises(BadInput, match="not drawn on a canvas"):
        canvas.source("latency_of_nothing")


class Host:
    """Stands for a browser: takes updates, and tells what a person did."""

    def __init__(self):
        self.sent = []

    def send(self, **changes):
        self.sent.append(changes)


@pytest.fixture
def drawing():
    made = CanvasDrawing("page_map", lambda frame, window: {**frame, "layer": window.get("layer")})
    made._hosts.append(Host())
    return made


def test_only_what_changed_is_sent(drawing):
    host, frame = drawing._hosts[0], {"x": np.arange(3)}
    drawing.show(frame, 1.0)
    drawing.show(frame, 1.0)
    assert [set(s) for s in host.sent] == [{"frame", "cursor"}]
    drawing.show(frame, 2.0)
    drawing.show({"x": np.arange(3)}, 2.0)  # another object, the same bytes
    assert [set(s) for s in host.sent[1:]] == [{"cursor"}]


def test_a_window_from_the_browser_reduces_the_frame_again(drawing):
    drawing.show({"x": np.arange(3)}, 0.0)
    drawing._heard("window", {"layer": 3})
    assert unpack(drawing._state["frame"])["layer"] == 3


def test_a_choice_is_told_once_and_its_echo_is_not(drawing):
    told, moments = [], []
    drawing.on_choose(told.append)
    drawing.on_seek(moments.append)
    drawing.choose("r1")  # from the page: nothing to tell
    drawing._heard("chosen", "r1")
    assert told == []
    drawing._heard("chosen", "r2")
    drawing._heard("seek", 0.25)
    assert told == ["r2"] and moments == [0.25]


def test_the_same_script_runs_in_panel_and_in_a_notebook():
    pytest.importorskip("panel")
    drawing = view("request_lanes").draw()
    panel, widget = drawing.__panel__(), drawing.widget()
    assert panel._esm == widget._esm == canvas.source("request_lanes")
    log = serving(3, requests=4)
    fold = view("request_lanes").fold()
    for event in log:
        fold.add(event)
    drawing.show(fold.frame(), 0.5)
    drawing.choose("r1")
    drawing.dark(True)
    for host in (panel, widget):
        assert unpack(host.frame)["lanes"] == len(fold.lanes)
        assert (host.cursor, host.chosen, host.is_dark) == (0.5, "r1", True)
    panel.chosen = "r2"  # a person in the page
    assert widget.chosen == "r2"


def payload(html: str) -> dict:
    text = re.search(r'^replay\(drawing, "[^"]*", (\{.*\})\);$', html, re.M).group(1)
    return json.loads(text)


def frames_of(html: str) -> list[bytes]:
    """What the browser makes of the fragment's data (replay.js: undoDifferences)."""
    facts = payload(html)
    data = gzip.decompress(base64.b64decode(facts["data"]))
    frames, offset, before = [], 0, np.zeros(0, np.uint8)
    for size, start in zip(facts["sizes"], facts["bodies"], strict=True):
        frame = np.frombuffer(data[offset : offset + size], np.uint8).copy()
        arrays = frame[start:]
        same = min(len(arrays), len(before))
        arrays[:same] ^= before[:same]
        before = arrays
        frames.append(frame.tobytes())
        offset += size
    return frames


def test_a_static_page_holds_every_frame_as_it_was():
    frames = [pack({"i": i, "x": np.arange(i * 3 + 1), "t": "</script>" * i}) for i in range(5)]
    html = static_html("page_map", frames, [0.0, 1.0, 2.0, 3.0, 4.0])
    assert frames_of(html) == frames
    assert html.count("</script>") == 1, "text of a run ends the script"


def test_a_static_view_keeps_moments_of_what_folds_to_its_cursor_and_one_frame_of_what_is_whole():
    log = serving(1, requests=10)
    many, one = static_view(view("page_map"), log), static_view(view("token_river"), log)
    facts = payload(many)
    assert 2 <= len(facts["times"]) <= replay.KEYFRAMES and facts["times"][-1] == log.duration
    assert facts["options"]["height"] == view("page_map").draw().height
    assert len(payload(one)["times"]) == 1
    assert unpack(frames_of(one)[0])["tokens"] == len(unpack(frames_of(one)[0])["token_lane"])


def test_a_view_that_is_a_chart_has_no_static_canvas():
    chart = View("chart", "?", view("page_map").fold, lambda: object())
    with pytest.raises(BadInput, match="not drawn on a canvas"):
        static_view(chart, serving(1, requests=2))


def test_moments_are_times_of_events_and_at_most_as_many_as_asked():
    log = serving(1, requests=10)
    times = {event.time for event in log}
    found = moments(log, 20)
    assert len(found) <= 20 and set(found) <= times and found == sorted(found)
    assert found[0] == 0.0 and found[-1] == log.duration
