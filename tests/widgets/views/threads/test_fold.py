"""Threads from made-up runs: lanes as a tree, edges, places along the critical path, and sight."""

import numpy as np
import pytest

from engine.core.events import Branch, Level, Mark, Page, Token, Told
from tests.widgets.made_runs import serving
from tests.widgets.views.threads.made import family, log, looked, says, workers
from widgets.views.threads import Threads
from widgets.views.threads.family import FORK, JOIN, preorder


def folded(made) -> dict:
    fold = Threads()
    fold.blobs = made.blobs
    for event in made:
        fold.add(event)
    return fold.frame()


def edges(frame: dict, kind: int) -> list[tuple[str, str, float, int]]:
    """(to, from, time, place) of each edge of that kind."""
    names = frame["names"]
    columns = (frame[f"edge_{k}"].tolist() for k in ("kind", "to", "source", "time", "place"))
    return [
        (names[t], names[s], when, at)
        for k, t, s, when, at in zip(*columns, strict=True)
        if k == kind
    ]


def path(frame: dict) -> list[tuple[str, int, int]]:
    """(thread, from token, to token) of each stretch of the critical path."""
    columns = (frame[f"path_{k}"].tolist() for k in ("lane", "first", "last"))
    return [(frame["names"][lane], a, b) for lane, a, b in zip(*columns, strict=True)]


def figures(frame: dict) -> dict[str, str]:
    return dict(map(tuple, frame["figures"]))


def forked(*more) -> dict:
    """A main thread of 5 tokens forks a and b, which say 3 and 4; then whatever comes."""
    return folded(
        log(
            Branch(0.0, "main"),
            *says("main", 1.0, 5),
            Branch(5.5, "a", "main"),
            Branch(5.6, "b", "main"),
            *says("a", 6.0, 3),
            *says("b", 6.5, 4),
            *more,
        )
    )


def test_lanes_stand_as_a_tree_children_under_their_parents_in_order_of_birth():
    order, depth = preorder([-1, 0, -1, 1, 0, 2])
    assert order == [0, 1, 3, 4, 2, 5]
    assert depth == [0, 1, 0, 2, 1, 1]


def test_parents_in_a_circle_still_get_lanes():
    order, _ = preorder([1, 0, -1])
    assert sorted(order) == [0, 1, 2]
    frame = folded(log(Branch(0.0, "a", "b"), Branch(0.0, "b", "a"), Branch(0.1, "c", "c")))
    assert sorted(frame["names"]) == ["a", "b", "c"]


def test_a_fork_leaves_its_parent_where_it_happened_and_starts_at_its_place():
    frame = forked()
    assert edges(frame, FORK) == [("a", "main", 5.5, 5), ("b", "main", 5.6, 5)]
    assert frame["above"].tolist() == [-1, 0, 0] and frame["depth"].tolist() == [0, 1, 1]
    first = frame["token_place"][frame["token_lane"] == frame["names"].index("a")]
    assert first.tolist() == [5, 6, 7]


def test_a_parent_that_forks_late_and_appears_late_is_known_all_the_same():
    frame = folded(log(*says("child", 0.0, 2), Branch(3.0, "child", "ghost")))
    assert frame["names"] == ["ghost", "child"] and edges(frame, FORK) == []


def test_who_reads_another_goes_on_from_the_further_of_the_two():
    frame = forked(Branch(12.0, "a", "main", "joined"), Branch(12.0, "b", "main", "joined"),
                   Mark(12.0, "main", "join", "a, b"), *says("main", 13.0, 2))  # fmt: skip
    assert edges(frame, JOIN) == [("main", "a", 12.0, 8), ("main", "b", 12.0, 9)]
    assert path(frame) == [("main", 0, 5), ("b", 5, 9), ("main", 9, 11)]
    assert figures(frame)["on the critical path"] == "11"
    assert figures(frame)["tokens"] == "14" and figures(frame)["tokens saved by sharing"] == "10"


def test_a_join_told_as_mark_and_as_state_is_one_edge_but_a_later_one_is_another():
    mark = Mark(12.0, "main", "join", "joined a.")
    frame = forked(mark, Branch(12.0, "a", "main", "joined"), *says("a", 13.0, 1),
                   Mark(14.0, "main", "join", "a"))  # fmt: skip
    assert [when for _, _, when, _ in edges(frame, JOIN)] == [12.0, 14.0]


def test_reading_a_thread_that_is_behind_does_not_bind():
    frame = forked(*says("main", 20.0, 6), Mark(30.0, "main", "join", "a"))
    assert path(frame) == [("main", 0, 11)]


def test_a_pruned_thread_keeps_the_judges_reason_and_is_not_the_end_of_the_path():
    frame = forked(
        *says("b", 20.0, 9),
        Branch(40.0, "b", "main", "pruned", "same as a (0.93)"),
        Mark(41.0, "a", "prune", "too slow"),
        Branch(41.0, "a", "main", "pruned"),
    )
    whys = dict(zip(frame["names"], frame["whys"], strict=True))
    assert whys == {"main": "", "a": "too slow", "b": "same as a (0.93)"}
    assert path(frame) == [("main", 0, 5)]


def test_the_path_ends_where_the_answer_was_said():
    frame = forked(Mark(12.0, "a", "answer", "42" * 40), *says("b", 20.0, 9))
    assert path(frame) == [("main", 0, 5), ("a", 5, 8)]
    assert figures(frame)["answer"].endswith("…") and len(figures(frame)["answer"]) == 24


def test_an_answer_of_nobody_in_particular_is_a_figure_and_a_verdict_stands_by_it():
    frame = forked(Mark(12.0, "engine", "answer", "42"), Mark(12.0, "engine", "verdict", "right"))
    assert figures(frame)["answer"] == "42 · right" and "engine" not in frame["names"]


def test_figures_the_engine_counts_itself_are_taken_as_they_are():
    levels = [Level(12.0, "engine", f"tokens_{k}", v) for k, v in (("total", 99.0), ("saved", 1e5))]
    told = figures(forked(*levels, Level(12.0, "engine", "tokens_critical", float("nan"))))
    assert told["tokens"] == "99" and told["tokens saved by sharing"] == "100,000"
    assert told["on the critical path"] == "9"


def test_drafts_that_were_refused_are_no_tokens_of_the_path():
    frame = folded(
        log(Token(0.0, "a", "x"), Token(1.0, "a", "y", accepted=False), Token(1.0, "a", "z"))
    )
    assert figures(frame)["tokens"] == "2" and frame["token_place"].tolist() == [0, 1, 1]


def test_waiting_is_a_stretch_until_the_thread_goes_on():
    frame = forked(
        Branch(6.0, "main", state="waiting"),
        Branch(12.0, "main"),
        Branch(13.0, "a", state="queued"),
    )
    rows = [frame["names"][lane] for lane in frame["wait_lane"]]
    spans = list(zip(rows, frame["wait_start"].tolist(), frame["wait_stop"].tolist(), strict=True))
    assert spans == [("main", 6.0, 12.0), ("a", 13.0, 13.0)]


def sees(frame: dict, time: float) -> dict[tuple[str, str], float]:
    """What each thread sees at a moment."""
    found = {}
    columns = (frame[f"sight_{k}"].tolist() for k in ("row", "block", "time", "value"))
    for row, block, when, value in zip(*columns, strict=True):
        if when <= time:
            found[frame["names"][row], frame["blocks"][block]] = value
    return {pair: value for pair, value in found.items() if value >= 0}


def test_sight_follows_gains_moves_and_losses_of_blocks():
    frame = folded(
        log(
            Branch(0.0, "w0"),
            Branch(0.0, "w1"),
            Level(1.0, "w0", "sees/prompt", 0.0),
            Level(1.0, "w0", "sees/w1:2", 64.0),
            Level(2.0, "w0", "sees/w1:2", 80.0),
            Level(3.0, "w0", "sees/w1:2", -1.0),
            Level(3.0, "w1", "sees/w0", 7.0),
        )
    )
    assert sees(frame, 1.5) == {("w0", "prompt"): 0.0, ("w0", "w1:2"): 64.0}
    assert sees(frame, 2.0)["w0", "w1:2"] == 80.0
    assert sees(frame, 9.0) == {("w0", "prompt"): 0.0, ("w1", "w0"): 7.0}
    assert frame["blocks"] == ["prompt", "w0", "w1:2"]
    assert frame["block_owner"] == ["prompt", "w0", "w1"]


def test_where_no_sight_is_told_pages_held_show_who_reads_whose():
    frame = folded(
        log(
            Branch(0.0, "r0"),
            Page(1.0, 7, "r0", "take", start=0),
            Page(1.0, 8, "r0", "take", start=16),
            Branch(2.0, "r0.1", "r0"),
            Page(2.0, 8, "r0.1", "share", start=16),
            Page(2.0, 9, "r0.1", "copy", start=32, parent=8),
            Page(3.0, 8, "r0.1", "drop"),
            Page(4.0, 5, "r9", "take"),
            page_size=16,
        )
    )
    assert frame["by_pages"] and not folded(log(Level(1.0, "a", "sees/b", 0.0)))["by_pages"]
    assert frame["blocks"] == ["r0"]  # what only its owner holds is no news
    assert sees(frame, 2.5) == {("r0", "r0"): 0.0, ("r0.1", "r0"): 16.0}
    assert sees(frame, 3.5) == {("r0", "r0"): 0.0}
    assert figures(frame)["tokens saved by sharing"] == "16"


def test_pages_of_a_serving_run_are_all_given_back_in_the_end():
    frame = folded(serving(3, requests=14))
    assert frame["blocks"] and sees(frame, 0.3) and sees(frame, 1e9) == {}


def test_workers_see_each_other_at_offsets_that_move():
    frame = folded(workers(3, 64))
    assert len(sees(frame, 0.0)) == 12
    assert sees(frame, 0.0)["w0", "w1"] != sees(frame, 0.64)["w0", "w1"]


def test_a_person_may_tell_a_run_what_its_header_names_until_it_is_over():
    live = log(Branch(0.0, "a"), close=False, commands=["fork", "kill"])
    assert folded(live)["commands"] == ["fork", "kill"]
    assert folded(log(Branch(0.0, "a"), commands=["fork"]))["commands"] == []


def test_an_empty_run_says_what_to_do():
    frame = folded(log())
    assert frame["empty"] == "No threads in this run." and frame["names"] == []


@pytest.mark.parametrize("made", [family(), workers(3, 40), serving(5, requests=8)])
def test_every_lane_and_place_is_within_bounds(made):
    frame = folded(made)
    for name in (
        "token_lane",
        "edge_to",
        "edge_source",
        "path_lane",
        "wait_lane",
        "mark_lane",
        "sight_row",
    ):
        assert np.all((frame[name] >= 0) & (frame[name] < frame["lanes"])), name
    assert np.all(frame["path_first"] <= frame["path_last"])
    assert np.array_equal(frame["path_first"][1:], frame["path_last"][:-1])
    assert np.all(frame["born_place"] <= frame["last_place"])


def test_sampled_attention_goes_to_the_blocks_in_the_order_of_the_view():
    """Each row of a sample is the next token's; w1 sees prompt, w1, w2, w0 by offset at first."""
    frame = folded(looked(3, 40, every=5))
    assert len(frame["look_time"]) == 3 * 8
    stops = frame["look_stop"].tolist()
    lanes = [frame["names"][row] for row in frame["look_row"].tolist()]
    assert lanes[:3] == ["w0", "w1", "w2"]
    for n, (begin, end) in enumerate(zip([0, *stops[:-1]], stops, strict=True)):
        blocks = [frame["blocks"][b] for b in frame["share_block"][begin:end].tolist()]
        values = frame["share_value"][begin:end]
        assert blocks[0] == "prompt" and values.sum() == pytest.approx(1)
        step = 5 * (n // 3 + 1)
        assert values[0] == pytest.approx(0.9 - 0.6 * step / 40)
        if n < 3:
            turn = [f"w{(n + k) % 3}" for k in range(3)]
            assert blocks[1:] == turn


def test_a_sample_that_is_missing_or_odd_is_left_out():
    made = looked(3, 20, every=5)
    refs = sorted(made.blobs)
    del made.blobs[refs[0]]
    made.blobs[refs[1]] = np.zeros(3, np.float32)
    made.blobs[refs[2]] = made.blobs[refs[2]][:1]
    assert len(folded(made)["look_time"]) == 3 + 1


def test_a_long_answer_leaves_room_for_the_verdict():
    marks = Mark(12.0, "a", "answer", "42" * 40), Mark(12.0, "a", "verdict", "right: it is 42")
    said = figures(forked(*marks))["answer"]
    assert said.endswith("… · right") and len(said) <= 24 + 3


def test_what_a_person_asked_in_vain_is_said_until_they_ask_again():
    refused = Mark(12.0, "threads", "refuse", "fork of a: 8 threads run")
    assert forked(refused)["refusal"] == [12.0, "fork of a: 8 threads run"]
    assert forked(refused, Told(13.0, {"kill": "a"}))["refusal"] == []
