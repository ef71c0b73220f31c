"""Moments in an address: seconds, or a share of the run, there and back."""

import pytest

from engine.core.errors import BadInput
from tests.workbench.toy import TOY
from workbench.catalogue import study
from workbench.moment import moment
from workbench.pages.study_panel import GLANCE, StudyPanel
from workbench.session import Session, study_session


def test_seconds_and_shares_are_told_apart_and_anything_else_is_one_line():
    assert moment("1.5") == (1.5, False)
    assert moment("40%") == (0.4, True)
    for text in ("", "-1", "nan", "inf", "x", "%"):
        with pytest.raises(BadInput, match="no moment"):
            moment(text)


def test_an_address_brings_the_cursor_and_the_pin_back():
    chosen = study("flover")
    small = {"executor": "modelled", "workload.count": 4}
    first = StudyPanel(
        chosen, study_session(chosen, chosen.configured(small)), at="50%", pin="r2"
    )  # fmt: skip
    run = first.session.begin().wait(300)
    for _ in range(3):
        first.look()
    assert first.stage.cursor.now == pytest.approx(run.log.duration / 2)
    assert first.stage.chosen == "r2"
    where = first.where()
    assert where == {"at": f"{run.log.duration / 2:.6g}", "pin": "r2"}
    first.close()


@pytest.mark.parametrize("watched", [False, True])
def test_only_a_run_that_nobody_could_watch_is_replayed(watched):
    """However short its own time: searches and compilers are in none of it."""
    panel = StudyPanel(TOY, Session(TOY.driver, TOY.config))
    panel.session.begin().wait(300)
    panel.stage.open(panel.session.run)
    panel._shown = panel.session.run
    if watched:
        panel.stage.tracks[0].opened -= GLANCE
    panel.look()
    assert panel.stage.cursor.playing is not watched
    panel.close()
