"""Moments in an address: seconds, or a share of the run, there and back."""

import pytest

from engine.core.errors import BadInput
from workbench.catalogue import study
from workbench.moment import moment
from workbench.pages.study_panel import StudyPanel
from workbench.session import study_session


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
