"""What the browser gets of many threads: columns of tokens, the one that is read, last states."""

import random

import numpy as np
import pytest

from engine.core.events import Branch, Level, Mark, Token
from engine.core.log import Log
from tests.widgets.views.threads.made import family, log, workers
from widgets.views.threads import Threads, detail
from widgets.views.threads.detail import AXES, MOST, MOST_READ, MOST_SEEN, reduce

WHOLE = {"axis": "time", "start": 0.0, "stop": 100.0, "first": 0, "last": 64}


def folded(made: Log) -> dict:
    fold = Threads()
    for event in made:
        fold.add(event)
    return fold.frame()


@pytest.fixture(scope="module")
def many() -> dict:
    """16 threads of 2,000 tokens each: more than is ever sent at a time."""
    fold = Threads()
    for event in log(
        *(Token(0.01 * n, f"t{i}", f"{n} ", -1.0 - (n % 2)) for n in range(2000) for i in range(16))
    ):
        fold.add(event)
    return fold.frame()


def texts(sent: dict, prefix: str = "token") -> list[str]:
    raw = sent["text" if prefix == "token" else f"{prefix}_text"].tobytes()
    stops = sent[f"{prefix}_stop"].tolist()
    return [raw[a:b].decode() for a, b in zip([0, *stops], stops, strict=False)]


def test_all_of_a_small_run_is_sent_by_lane_with_its_text():
    made = family()
    sent = reduce(folded(made), {})
    assert sent["shown"] == sent["tokens"] == len(made.of(Token))
    assert np.all(np.diff(sent["token_lane"]) >= 0)
    said: dict[str, list[str]] = {}
    for token in made.of(Token):
        said.setdefault(token.thread, []).append(token.text)
    got: dict[str, list[str]] = {}
    for lane, text in zip(sent["token_lane"], texts(sent), strict=True):
        got.setdefault(sent["names"][lane], []).append(text)
    assert got == said


def test_a_token_stands_in_the_step_that_made_it_and_a_child_after_the_fork():
    sent = reduce(folded(family()), {})
    main = sent["token_lane"] == sent["names"].index("main")
    assert sent["token_step"][main][:30].tolist() == list(range(30))
    child = sent["names"].index("main.0")
    assert sent["born_step"][child] == 30
    assert sent["token_step"][sent["token_lane"] == child][0] == 30
    assert sent["step_total"] == 170 and sent["step_time"][-1] == pytest.approx(1.7)


def test_without_steps_the_moments_of_tokens_are_steps():
    sent = reduce(folded(log(*(Token(t, w, "x") for t in (1.0, 2.0, 5.0) for w in "ab"))), {})
    assert sent["step_time"].tolist() == [1.0, 2.0, 5.0] and sent["born_step"].tolist() == [0, 0]


def test_many_tokens_come_as_columns_that_lose_none(many):
    sent = reduce(many, WHOLE)
    assert len(sent["token_lane"]) <= MOST + 64 and sent["shown"] == 0
    assert sent["token_count"].sum() == sent["tokens"] == 32_000
    assert np.all(sent["until_time"] >= sent["token_time"])
    assert sent["token_logprob"].min() >= -2.0 and sent["token_logprob"].max() <= -1.0
    assert np.all(np.diff(sent["token_lane"]) >= 0)


@pytest.mark.parametrize("axis", AXES)
def test_close_up_each_token_comes_with_its_text(many, axis):
    start, stop = (10.0, 10.5) if axis == "time" else (1000, 1050)
    sent = reduce(many, {**WHOLE, "axis": axis, "start": start, "stop": stop})
    assert "token_count" not in sent and sent["tokens"] == 32_000
    at = sent[f"token_{axis}"]
    assert np.count_nonzero((at >= start) & (at <= stop)) >= 16 * 50
    assert all(text.strip().isdigit() for text in texts(sent))


def test_the_thread_that_is_read_comes_whole_beside_the_columns(many):
    sent = reduce(many, {**WHOLE, "reading": 3, "until": 10.0})
    assert set(sent["read_lane"].tolist()) == {3}
    assert texts(sent, "read") == [f"{n} " for n in range(1001)][-MOST_READ:]


def test_moves_of_blocks_are_thinned_but_the_last_state_stays():
    frame = folded(workers(12, 4000))
    sent = reduce(frame, WHOLE)
    assert len(frame["sight_row"]) > MOST_SEEN and sent["sight_total"] == len(frame["sight_row"])
    assert len(sent["sight_row"]) <= 1.5 * MOST_SEEN

    def last(columns: dict) -> dict:
        kept = (columns[f"sight_{k}"].tolist() for k in ("row", "block", "value"))
        return {(row, block): value for row, block, value in zip(*kept, strict=True)}

    assert last(sent) == last(frame)


def test_blocks_beyond_what_is_sent_are_counted(monkeypatch):
    monkeypatch.setattr(detail, "MOST_BLOCKS", 4)
    made = log(Branch(0.0, "w"), *(Level(1.0, "w", f"sees/b{i}", 16.0 * i) for i in range(9)))
    sent = reduce(folded(made), {})
    assert len(sent["blocks"]) == 4 and sent["block_total"] == 9 and sent["sight_block"].max() == 3


def test_the_furthest_place_by_a_moment_never_falls():
    sent = reduce(folded(family()), {})
    assert np.all(np.diff(sent["front_time"]) >= 0) and np.all(np.diff(sent["front_place"]) > 0)
    assert sent["front_place"][-1] == sent["most"] == 170


@pytest.mark.parametrize("axis", AXES)
def test_columns_are_those_of_a_plain_walk_over_the_tokens(axis):
    """Threads that fork, wait and read each other, with refused drafts: token by token."""
    fold, dice = Threads(), random.Random(3)
    fold.add(Branch(0.0, "a"))
    for n in range(1, 6001):
        now = 0.01 * n
        if n % 500 == 0:
            fold.add(Branch(now, f"b{n}", "a"))
            fold.add(Mark(now, "a", "join", f"b{n - 500}"))
        for name in list(fold.lanes):
            if dice.random() < 0.7:
                fold.add(Token(now, name, "x", -dice.random(), dice.random() < 0.9))
    frame = fold.frame()
    whole = {"axis": axis, "start": 0.0, "stop": 1e9, "first": 0, "last": 64}
    sent = reduce(frame, whole)
    at = {
        "time": frame["token_time"],
        "step": np.searchsorted(frame["step_time"], frame["token_time"], "left"),
        "place": frame["token_place"],
    }[axis].astype(np.float64)
    lanes = frame["token_lane"].tolist()
    count = max(64, MOST // (max(lanes) - min(lanes) + 1))
    wide = (at.max() - at.min()) / count
    marks: dict[tuple[int, int], list[int]] = {}
    for token, (lane, x) in enumerate(zip(lanes, at.tolist(), strict=True)):
        place = min(int((x - at.min()) / wide), count - 1)
        marks.setdefault((lane, place), []).append(token)
    want = [marks[key] for key in sorted(marks)]
    assert sent["token_count"].tolist() == [len(tokens) for tokens in want]
    assert sent["token_lane"].tolist() == [key[0] for key in sorted(marks)]
    assert sent["token_time"].tolist() == [frame["token_time"][t[0]] for t in want]
    assert sent["until_place"].tolist() == [frame["token_place"][t[-1]] for t in want]
    likely = [frame["token_logprob"][t].astype(np.float64).mean() for t in want]
    np.testing.assert_allclose(sent["token_logprob"], likely, rtol=1e-5)
    accepted = [int(frame["token_accepted"][t].any()) for t in want]
    assert sent["token_accepted"].tolist() == accepted


def test_what_is_seen_is_cut_down_anew_when_it_changes():
    """A fold that was framed on the way shows at its end what one that was not shows."""
    watched, made = Threads(), workers(4, 120)
    frames = 0
    for n, event in enumerate(made):
        watched.add(event)
        if n % 37 == 0:
            frames += len(reduce(watched.frame(), WHOLE)["names"]) > 0
    sent, plain = reduce(watched.frame(), WHOLE), reduce(folded(made), WHOLE)
    assert frames > 3
    for name in ("row", "block", "time", "value"):
        assert sent[f"sight_{name}"].tolist() == plain[f"sight_{name}"].tolist()
    kept = watched.frame()
    watched.add(Token(made.duration, "w0", "x"))
    assert watched.frame()["sight_row"] is kept["sight_row"]


def test_no_text_travels_with_columns(many):
    assert "text" not in reduce(many, WHOLE)


def test_an_empty_frame_passes_through():
    assert reduce(Threads().frame(), {})["empty"]
