"""The topology's fold: traffic by link, exactly what the moves add up to, at any moment."""

import random

import numpy as np
import pytest

from engine.core.events import Closed, Level, Move, Opened
from engine.core.log import Log
from widgets.fold import History
from widgets.stage.feed import Feed
from widgets.stage.steps import Unseen
from widgets.views.topology import VIEW
from widgets.views.topology import fold as folding
from widgets.views.topology.links import USE


def log_of(moves: list[Move], **facts) -> Log:
    last = moves[-1].time if moves else 0.0
    return Log([Opened(0.0, {}, facts=facts), *moves, Closed(last, "finished")])


def frame(log: Log, time: float | None = None) -> dict:
    history = History(log, VIEW.fold())
    return (history.latest() if time is None else history.at(time)).frame()


def links(shown: dict) -> dict[tuple[str, str], tuple[float, int]]:
    rows = zip(shown["source"], shown["target"], shown["bytes"], shown["count"], strict=True)
    return {(shown["names"][a], shown["names"][b]): (size, count) for a, b, size, count in rows}


def test_links_are_what_their_moves_add_up_to_most_bytes_first():
    dice, moves, truth = random.Random(3), [], {}
    for step in range(400):
        pair = f"rank {dice.randrange(12)}", f"rank {dice.randrange(12)}"
        size = float(dice.randrange(1, 1000))
        moves.append(Move(step + 1.0, *pair, size, step + 0.5))
        had = truth.get(pair, (0.0, 0))
        truth[pair] = (had[0] + size, had[1] + 1)
    shown = frame(log_of(moves))
    assert links(shown) == truth
    assert (np.diff(shown["bytes"]) <= 0).all()
    assert shown["names"] == [f"rank {n}" for n in range(12)]


def test_the_cursor_counts_what_has_arrived():
    log = log_of([Move(1.0, "a", "b", 10.0, 0.0), Move(2.0, "a", "b", 5.0, 1.0)])
    assert links(frame(log, 1.5)) == {("a", "b"): (10.0, 1)}
    assert links(frame(log)) == {("a", "b"): (15.0, 2)}
    assert frame(log, 0.5)["empty"]


def test_time_under_way_counts_what_overlaps_once():
    moves = [Move(2.0, "a", "b", 1.0, 0.0), Move(3.0, "a", "b", 1.0, 1.0)]
    moves.append(Move(6.0, "a", "b", 1.0, 5.0))
    shown = frame(log_of(moves))
    assert shown["busy"].tolist() == pytest.approx([4.0])
    assert dict(map(tuple, shown["figures"]))["reached on it"] == "0.75 B/s"


def test_ranks_that_send_nothing_are_there_too():
    lanes = ["rank 0", "rank 1", "rank 2", "link 0 to 1"]
    shown = frame(log_of([Move(1.0, "rank 0", "rank 1", 8.0, 0.0)], lanes=lanes))
    assert shown["names"] == ["rank 0", "rank 1", "rank 2"]


def test_more_ends_and_links_than_can_be_shown_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr(folding, "MOST_ENDS", 4)
    monkeypatch.setattr(folding, "MOST_LINKS", 3)
    moves = [Move(n + 1.0, f"r{n % 6}", f"r{(n + 1) % 6}", n + 1.0, n) for n in range(12)]
    shown = frame(log_of(moves))
    assert len(shown["names"]) == 4 and shown["left_out"] == 2
    assert len(shown["source"]) == 3
    assert dict(map(tuple, shown["figures"]))["links in use"] == "6"


def test_links_tell_what_of_them_is_used_up_to_the_cursor():
    """Half of the link for one second of two, all of it in the second."""
    events = [
        Opened(0.0, {}, facts={"links": {"port": 10.0, "idle": 5.0, "wrong": "fast"}}),
        Level(0.0, "port", USE, 5.0),
        Level(1.0, "port", USE, 10.0),
        Level(1.0, "elsewhere", USE, 3.0),
        Move(2.0, "a", "b", 15.0, 0.0),
        Level(2.0, "port", USE, 0.0),
        Closed(4.0, "finished"),
    ]
    shown = frame(Log(events), 2.0)
    assert shown["links"] == ["port"] and shown["links_left"] == 0
    assert shown["link_bytes"].tolist() == pytest.approx([15.0])
    assert shown["link_peak"].tolist() == pytest.approx([1.0])
    use = shown["link_use"].reshape(1, -1)[0]
    half = len(use) // 2
    assert use[:half] == pytest.approx(0.5) and use[half:] == pytest.approx(1.0)
    assert dict(map(tuple, shown["figures"]))["busiest link: port"] == "75 %"
    early = frame(Log(events), 1.0)
    assert early["link_bytes"].tolist() == pytest.approx([5.0])
    assert frame(log_of([Move(1.0, "a", "b", 1.0, 0.0)]))["links"] == []


def test_before_the_end_its_total_stands_beneath_once_the_end_has_been_here():
    log = log_of([Move(1.0, "a", "b", 10.0, 0.0), Move(2.0, "a", "b", 5.0, 1.0)])
    feed = Feed(VIEW, Unseen())
    feed.open(log)

    def told(time: float) -> list[list[str]]:
        assert feed.advance(time, False, np.inf) and feed.show(time)
        return feed._frame["figures"][0]

    assert told(1.5) == ["sent so far", "10 B"]
    assert told(2.0) == ["sent so far", "15 B"]
    assert told(1.5) == ["sent so far, 15 B in all", "10 B"]
