"""Acceptance from hand-made verifications: by a draft's place, and tokens that a pass came to."""

import pytest

from engine.core.events import Closed, Opened, Span, Token
from widgets.views.acceptance import VIEW
from widgets.views.acceptance.picture import LENGTH, picture


def verification(time, thread, kept, refused, branch=0):
    return [
        *(Token(time, thread, "d") for _ in range(kept)),
        *(Token(time, thread, "x", accepted=False, branch=branch) for _ in range(refused)),
        Token(time, thread, "t"),
    ]


def folded(events):
    fold = VIEW.fold()
    for event in events:
        fold.add(event)
    return fold


RUN = [
    Opened(0.0, {}),
    Token(0.5, "a", "first"),  # of the prompt: nothing was drafted
    *verification(1.0, "a", 3, 0),
    *verification(1.0, "b", 1, 2),
    *verification(2.0, "a", 0, 3),
    *verification(3.0, "b", 2, 1),
]


def test_every_verification_with_drafts_is_a_row():
    frame = folded(RUN).frame()
    rows = zip(frame["time"], frame["owners"], frame["kept"], frame["drafted"], strict=True)
    assert sorted(rows) == [(1.0, "a", 3, 3), (1.0, "b", 1, 3), (2.0, "a", 0, 3), (3.0, "b", 2, 3)]


def test_a_draft_is_judged_where_all_before_it_held():
    shown = picture(folded(RUN).frame(), 9.0, "")
    judged, made, length = (plot.lines[0] for plot in shown.plots)
    assert judged.x.tolist() == [1, 2, 3]
    assert judged.y == pytest.approx([3 / 4, 2 / 3, 1 / 2])
    assert made.y == pytest.approx([3 / 4, 2 / 4, 1 / 4])
    assert length.y == pytest.approx([1, 3 / 4, 2 / 4, 1 / 4])
    assert shown.figures[0] == ("2.5", "tokens a verification")
    assert shown.figures[1] == ("50 %", "of the drafts held")


def test_it_shows_what_was_known_at_the_cursor_and_the_chosen_ones_own():
    shown = picture(folded(RUN).frame(), 2.0, "a")
    assert shown.plots[0].title.endswith(", a")
    assert shown.plots[0].lines[0].y == pytest.approx([1 / 2, 1, 1])
    assert shown.figures[2] == ("3", "verifications, 4 in all")
    early = picture(folded(RUN).frame(), 0.0, "")
    assert early.figures[0][0] == "–" and not len(early.plots[0].lines[0].x)


def test_of_a_tree_places_are_not_made_up():
    frame = folded([*RUN, *verification(4.0, "a", 2, 4, branch=1)]).frame()
    assert frame["drafted"].tolist()[-2:] == [6, 3] and frame["trees"]
    shown = picture(frame, 9.0, "")
    assert [plot.title for plot in shown.plots] == [LENGTH]
    assert "trees" in shown.note


def test_tokens_of_one_moment_are_no_drafts_where_nothing_verifies():
    events = [Opened(0.0, {}), *verification(1.0, "a", 2, 0)]
    assert folded([*events, Closed(2.0, "finished")]).frame()["empty"] == "No drafts in this run."
    assert not picture(folded([*events, Span(1.0, "verify", "verify", 0.5)]).frame(), 9, "").empty


def test_a_copy_goes_its_own_way():
    fold = folded(RUN)
    other = fold.copy()
    for event in verification(4.0, "a", 1, 1):
        other.add(event)
    assert len(fold.frame()["kept"]) == 4 and len(other.frame()["kept"]) == 5
