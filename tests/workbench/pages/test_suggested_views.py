"""Which views a log without a study gets."""

from engine.core.events import Blob, Branch, Level, Opened, Span, Token
from engine.core.log import Log
from workbench.pages.suggested_views import suggested_views


def test_threads_that_fork_or_see_each_other_get_the_thread_view_first():
    plain = [Opened(0.0, {}), Branch(0.0, "r0"), Token(1.0, "r0", "x")]
    assert "threads" not in suggested_views(Log(plain))
    assert suggested_views(Log([*plain, Branch(2.0, "r0.1", "r0")]))[0] == "threads"
    assert suggested_views(Log([*plain, Level(2.0, "r0", "sees/r1", 4.0)]))[0] == "threads"


def test_at_most_four_views_and_the_text_only_once():
    log = Log(
        [
            Branch(0.0, "r0"),
            Branch(0.0, "r1", "r0"),
            Token(1.0, "r0", "x"),
            Level(1.0, "a", "b", 1.0),
        ]
    )
    names = suggested_views(log)
    assert len(names) <= 4 and "token_river" not in names


def test_a_training_on_ranks_shows_its_losses_and_its_ranks():
    told = [Level(1.0, "training", "loss", 3.0), Span(1.0, "training", "steps", 0.0, tag="0:1")]
    assert suggested_views(Log(told)) == ("levels",)
    assert suggested_views(Log([*told, Span(2.0, "rank 0", "F", 1.0)])) == ("levels", "schedule")


def test_blocks_of_masks_show_what_was_decided_when():
    told = [Branch(0.0, "r0"), Blob(1.0, "unmasking/r0/0", "unmasking/r0/0", [3, 2])]
    assert suggested_views(Log([*told, Token(1.0, "r0", "0:a ")]))[0] == "unmasking"
