"""Request lanes from hand-made events, against measures of the same log, and cut to a window."""

import numpy as np
import pytest

from engine.core import measure
from engine.core.events import Branch, Move, Opened, Span, Token
from tests.widgets.made_runs import serving
from tests.widgets.views.page_map.test_pool import same
from widgets.fold import History
from widgets.views.request_lanes import RequestLanes
from widgets.views.request_lanes.detail import MOST, MOST_LANES, MOST_STEPS, reduce
from widgets.views.request_lanes.fold import CHUNKS, ENDS, STATES


def folded(events) -> RequestLanes:
    fold = RequestLanes()
    for event in events:
        fold.add(event)
    return fold


def stretches(frame: dict) -> list[tuple[str, str, float, float]]:
    return [
        (frame["names"][lane], STATES[state], float(start), float(stop))
        for lane, state, start, stop in zip(
            *(frame[f"stretch_{k}"] for k in ("lane", "state", "start", "stop")), strict=True
        )
    ]


def test_a_fleets_requests_say_where_they_were_sent():
    facts = {"fleet": ["replica 0", "replica 1"], "roles": ["prefill", "decode"]}
    events = [
        Branch(1.0, "r0", state="queued"),
        Move(1.0, "router", "replica 0", 40.0, 1.0, "r0"),
        Move(3.0, "replica 0", "replica 1", 2e6, 2.0, "r0"),
        Move(3.5, "replica 0", "elsewhere", 1.0, 3.0, "r0"),  # no replica
        Move(4.0, "replica 0", "replica 1", 1.0, 3.5, "r9"),  # nobody's lane
    ]
    frame = folded([Opened(0.0, {}, facts=facts), *events]).frame()
    assert frame["places"] == ["router", "replica 0, prefill", "replica 1, decode"]
    assert frame["sent_lane"].tolist() == [0, 0] and frame["sent_bytes"].tolist() == [40.0, 2e6]
    assert frame["sent_source"].tolist() == [0, 1] and frame["sent_target"].tolist() == [1, 2]
    assert (frame["sent_start"].tolist(), frame["sent_stop"].tolist()) == ([1.0, 2.0], [1.0, 3.0])
    assert not len(folded([Opened(0.0, {}), *events]).frame()["sent_lane"])
    small = reduce(frame, {"start": 0.0, "stop": 1.0, "first": 0, "last": 1})
    assert len(small["sent_lane"]) == 2


def test_a_life_is_told_as_stretches_chunks_ticks_and_an_end():
    frame = folded(
        [
            Branch(1.0, "r0", state="queued"),
            Branch(2.0, "r0", state="running"),
            Span(3.0, "r0", "prefill", 2.0, tag="0:64"),
            Token(3.0, "r0", "a"),
            Token(3.5, "r0", "no", accepted=False),
            Branch(4.0, "r0", state="preempted", why="3 pages short"),
            Branch(5.0, "r0", state="running"),
            Token(6.0, "r0", "b"),
            Branch(6.0, "r0", state="finished", why="stop"),
        ]
    ).frame()
    assert stretches(frame) == [
        ("r0", "queued", 1.0, 2.0),
        ("r0", "running", 2.0, 4.0),
        ("r0", "preempted", 4.0, 5.0),
        ("r0", "running", 5.0, 6.0),
    ]
    assert (frame["chunk_first"][0], frame["chunk_last"][0]) == (0, 64)
    assert frame["tick_time"].tolist() == [3.0, 6.0]
    assert (frame["ended"][0], ENDS[frame["outcome"][0]], frame["whys"]) == (
        6.0,
        "finished",
        ["stop"],
    )
    assert dict(frame["figures"])["preemptions"] == "1"


def test_frames_are_chunks_of_their_lanes_and_rows_of_their_step():
    frame = folded(
        [
            Span(1.0, "frame 3", "denoise", 0.5, tag="8:16"),
            Span(1.0, "engine", "step", 0.5, tag="decode=2 prefill=0 threads=16"),
        ]
    ).frame()
    assert [CHUNKS[what] for what in frame["chunk_what"]] == ["denoise"]
    assert (frame["chunk_first"][0], frame["chunk_last"][0]) == (8, 16)
    assert (frame["step_decode"][0], frame["step_threads"][0]) == (2, 16)


def test_what_is_still_going_on_lasts_until_now():
    frame = folded([Branch(1.0, "r0", state="queued"), Branch(4.0, "r1", state="queued")]).frame()
    assert stretches(frame) == [("r0", "queued", 1.0, 4.0), ("r1", "queued", 4.0, 4.0)]


def test_a_rejected_request_has_a_lane_and_a_reason():
    frame = folded(
        [Branch(1.0, "r0", state="queued"), Branch(1.0, "r0", state="rejected", why="too long")]
    ).frame()
    assert ENDS[frame["outcome"][0]] == "rejected" and frame["whys"] == ["too long"]
    assert dict(frame["figures"])["finished"] == "0 of 1"


def test_a_fork_hangs_under_its_parent():
    frame = folded(
        [Branch(1.0, "r0", state="running"), Branch(2.0, "r0.1", "r0", "queued")]
    ).frame()
    assert frame["above"].tolist() == [-1, 0]


def test_a_tag_that_is_no_range_is_no_error():
    frame = folded([Span(1.0, "r0", "prefill", 0.5, tag="x"), Span(1.0, "engine", "step", 0.5)])
    assert frame.frame()["chunk_last"].tolist() == [0]


def test_lanes_agree_with_the_measures_of_the_same_log():
    log = serving(1, pages=128, requests=30, arrive=0.8)
    frame, served = folded(log).frame(), measure.served(log)
    assert frame["names"] == list(served)
    for lane, request in enumerate(served.values()):
        ticks = frame["tick_time"][frame["tick_lane"] == lane]
        assert ticks.tolist() == request.tokens
        mine = frame["chunk_lane"] == lane
        computed = frame["chunk_last"][mine] - frame["chunk_first"][mine]
        assert computed.sum() == request.prefilled
        states = frame["stretch_state"][frame["stretch_lane"] == lane]
        assert np.isin(states, (2, 3)).sum() == request.preemptions
        assert (request.ended is None) == bool(np.isnan(frame["ended"][lane]))
    finished = measure.serving(log).finished
    assert dict(frame["figures"])["finished"] == f"{finished} of {len(served)}"


def test_steps_hold_what_their_spans_say():
    log = serving(2, requests=8)
    spans = [s for s in log.of(Span) if s.name == "step"]
    frame = folded(log).frame()
    assert frame["step_stop"].tolist() == [s.stop for s in spans]
    tokens = frame["step_decode"] + frame["step_prefill"]
    assert tokens.tolist() == [sum(int(p.split("=")[1]) for p in s.tag.split()) for s in spans]


def test_scrubbing_back_equals_a_fresh_fold(monkeypatch):
    monkeypatch.setattr("widgets.fold.KEEP_EVERY", 150)
    log = serving(1, pages=128, requests=20, arrive=0.8)
    history = History(log, RequestLanes())
    history.latest().frame()
    for share in (0.8, 0.2, 0.95, 0.5, 0.0):
        time = log.duration * share
        same(history.at(time).frame(), folded(e for e in log if e.time <= time).frame())


def test_a_small_run_reaches_the_browser_whole():
    frame = folded(serving(2, requests=8)).frame()
    sent = reduce(frame, {})
    assert (sent["ticks"], sent["step_every"], sent["lane0"]) == (len(frame["tick_lane"]), 1, 0)
    for name, value in frame.items():
        np.testing.assert_array_equal(sent[name], value, err_msg=name)


@pytest.fixture(scope="module")
def large() -> dict:
    """300 requests of 500 tokens in 10,000 steps."""
    fold = RequestLanes()
    fold.add(Opened(0.0, {}))
    for step in range(10_000):
        time = step / 100
        for lane in range(step % 20, 300, 20):
            fold.add(Token(time, f"r{lane}", "x"))
        fold.add(Span(time, "engine", "step", time - 0.01, tag="decode=15 prefill=0"))
    return fold.frame()


def test_a_large_run_is_thinned_to_what_pixels_show_and_says_of_how_many(large):
    sent = reduce(large, {})
    assert len(sent["tick_lane"]) <= MOST < sent["ticks"] == 150_000
    assert len(sent["step_start"]) <= MOST_STEPS and sent["steps"] == 10_000
    assert sent["step_every"] == 4 and sent["step_stop"][0] == sent["step_start"][1]


def test_a_window_brings_every_tick_in_it(large):
    window = {"start": 10.0, "stop": 12.0, "first": 30, "last": 50}
    sent = reduce(large, window)

    def inside(frame: dict) -> list[tuple[int, float]]:
        lane, time = frame["tick_lane"], frame["tick_time"]
        seen = (time >= 10) & (time <= 12) & (lane >= 30) & (lane <= 50)
        return list(zip(lane[seen].tolist(), time[seen].tolist(), strict=True))

    assert inside(sent) == inside(large) and len(inside(sent)) > 50
    assert sent["step_every"] == 1


def test_names_of_very_many_lanes_come_as_the_window_moves():
    fold = folded(Branch(i / 10, f"r{i}", state="queued") for i in range(MOST_LANES + 3000))
    frame = fold.frame()
    for first in (0, 2500, MOST_LANES + 2900):
        sent = reduce(frame, {"start": 0, "stop": 1, "first": first, "last": first + 40})
        assert len(sent["names"]) == MOST_LANES and sent["lanes"] == MOST_LANES + 3000
        assert sent["names"][first - sent["lane0"]] == f"r{first}"
