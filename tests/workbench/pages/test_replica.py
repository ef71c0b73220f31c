"""A replica's page, and the way to it from its tile."""

import panel as pn
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Page
from workbench.catalogue import study
from workbench.pages.replica import SHOWN, ReplicaPage
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study import StudyPage
from workbench.pages.study_panel import StudyPanel
from workbench.session import study_session


def asking(monkeypatch, **query: str) -> None:
    given = {name: [value.encode()] for name, value in query.items()}
    monkeypatch.setattr(type(pn.state), "session_args", given)


def test_it_shows_one_replica_and_the_way_back(monkeypatch):
    asking(monkeypatch, slug="dualmap", watch="4")
    page = ReplicaPage(Shelf())
    log = page.session.begin().wait(300).log
    assert log.of(Page) and "fleet" not in log.opened.facts
    assert [view.name for view in page.stage.views] == list(SHOWN)
    assert "replica 4" in page._head() and "./study?slug=dualmap&amp;watch=4" in page._head()
    page.look()
    page.session.become(update(page.session.config, {"watch": 2}))
    page.look()  # the heading and the way back are of the replica that is watched now
    assert "replica 2" in page.head.object and "watch=2" in page.head.object
    page.session.close()


@pytest.mark.parametrize(
    "query, words",
    [
        ({}, "of no study"),
        ({"slug": "flover"}, "has no fleet"),
        ({"slug": "dualmap", "watch": "6"}, "replica 6, there are 6"),
    ],
)
def test_what_is_no_replica_is_one_line(monkeypatch, query, words):
    asking(monkeypatch, **query)
    with pytest.raises(BadInput, match=words):
        ReplicaPage(Shelf())


def test_a_tile_that_is_pressed_leads_to_its_replica():
    chosen = study("dualmap")
    config = update(chosen.config, {"engine.workload.groups": 2})
    page = StudyPage(StudyPanel(chosen, study_session(chosen, config)), Shelf())
    page._lead()
    assert "Replica 0 →" in page.onward.object
    page.panel.stage.chosen = "replica 5"
    assert "Replica 5 →" in page.onward.object and "watch=5" in page.onward.object
    assert "workload.groups=2" in page.onward.object
    page.panel.stage.chosen = "r7"  # a request
    assert "Replica 0 →" in page.onward.object
    page.panel.close()
