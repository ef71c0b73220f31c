"""Fold of a fleet: where requests are, what is dead, what was sent."""

from engine.core.events import Branch, Level, Mark, Move, Opened, Span
from widgets.views.fleet.fold import Fleet

FACTS = {
    "fleet": ["replica 0", "replica 1"],
    "roles": ["prefill", "decode"],
    "pages": 10,
    "max_running": 4,
    "power": [[10.0, 110.0], [20.0, 20.0]],
}


def folded(*events, **facts) -> dict:
    state = Fleet()
    state.add(Opened(0.0, {}, "", 0, "virtual", {}, FACTS | facts))
    for event in events:
        state.add(event)
    return state.frame()


def test_a_request_waits_runs_and_travels():
    to_first = Move(0.0, "router", "replica 0", 400.0, 0.0, "r0")
    begins = Branch(0.5, "r0", "", "running")
    chunk = Span(1.0, "r0", "prefill", 0.5, tag="20:100")
    frame = folded(to_first)
    assert frame["waiting"].tolist() == [1, 0]
    frame = folded(to_first, begins, chunk)
    assert (frame["waiting"].tolist(), frame["running"].tolist()) == ([0, 0], [1, 0])
    assert abs(frame["hits"][0] - 0.2) < 1e-6
    sent = Move(1.5, "replica 0", "replica 1", 1e6, 1.0, "r0")
    frame = folded(to_first, begins, chunk, sent)
    assert (frame["waiting"].tolist(), frame["running"].tolist()) == ([0, 1], [0, 0])
    assert (frame["sent_from"].tolist(), frame["sent_to"].tolist()) == ([-1, 0], [0, 1])
    frame = folded(to_first, begins, sent, Branch(2.0, "r0", "", "finished"))
    assert frame["figures"][2] == ["over", "1"]
    assert frame["served"].tolist() == [1, 1]


def test_what_is_stolen_while_it_waits_is_served_where_it_ran():
    events = [
        Move(0.0, "router", "replica 0", 400.0, 0.0, "r0"),
        Move(0.5, "replica 0", "replica 1", 0.0, 0.5, "r0"),
        Branch(1.0, "r0", "", "running"),
        Branch(2.0, "r0", "", "finished"),
    ]
    assert folded(*events)["served"].tolist() == [0, 1]


def test_a_preempted_request_waits_where_it_was_and_runs_there_again():
    events = [
        Move(0.0, "router", "replica 0", 400.0, 0.0, "r0"),
        Branch(0.5, "r0", "", "running"),
        Branch(1.0, "r0", "", "preempted", "2 pages short"),
    ]
    frame = folded(*events)
    assert (frame["waiting"].tolist(), frame["served"].tolist()) == ([1, 0], [0, 0])
    frame = folded(*events, Branch(1.5, "r0", "", "running"))
    assert (frame["waiting"].tolist(), frame["running"].tolist()) == ([0, 0], [1, 0])


def test_where_some_requests_are_recorded_the_view_says_so():
    assert folded(record_every=1000)["figures"][0] == ["recorded", "one request in 1,000"]
    assert folded()["figures"][0][0] == "running"


def test_work_pages_power_and_death():
    frame = folded(
        Span(1.0, "replica 0", "step", 0.5),
        Level(1.0, "replica 0", "pages_used", 4.0),
        Mark(1.0, "replica 1", "died", "dead"),
    )
    assert frame["busy"].tolist() == [0.5, 0.0]
    assert abs(frame["used"][0] - 0.4) < 1e-6
    assert frame["watts"].tolist() == [60.0, 20.0]
    assert frame["dead"].tolist() == [0, 1]


def test_a_run_without_a_fleet_says_what_to_do():
    assert "Start a run" in Fleet().frame()["empty"]
