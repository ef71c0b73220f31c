"""One person's allowance: pages, runs at once, events kept; others are not touched by it."""

import asyncio

import pytest
from tornado.httpserver import HTTPServer
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import Application, RequestHandler

from engine.core.errors import BadInput
from tests.workbench.toy import TOY
from workbench.pages.frame.visitors import COOKIE, greet
from workbench.pages.shelf import allowance
from workbench.pages.shelf.allowance import GOING, PAGES
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import StudyPanel
from workbench.session import Session

LONG = {"count": 1_000_000, "wait": 0.001}


@pytest.fixture
def opened():
    """Opens a page's session for a person on one shelf."""
    made, shelf = [], Shelf()

    def open_one(person="ann"):
        session = Session(TOY.driver, TOY.config, study=TOY.slug)
        made.append(session)
        shelf.check_room(person)
        session.name = shelf.show(session, person)
        return session

    open_one.shelf = shelf
    yield open_one
    for session in made:
        session.close()


def going(session):
    session.config = TOY.configured(LONG)
    return session.begin()


def test_one_run_more_than_allowed_ends_the_one_longest_untouched_and_says_so(opened):
    sessions = [opened() for _ in range(GOING)]
    runs = [going(session) for session in sessions]
    theirs = going(opened("bob"))
    sessions[0].turned, sessions[1].turned = 2.0, 1.0
    newest = going(opened())
    runs[1].ended.wait(300)
    assert runs[1].log.closed.reason == "stopped"
    assert f"{GOING} newer runs" in sessions[1].said and "Turn a knob" in sessions[1].said
    assert all(run.state == "running" for run in (runs[0], *runs[2:], newest, theirs))
    panel = StudyPanel(TOY, sessions[1])
    panel.look()
    assert panel.fault.visible and "newer runs of yours" in panel.fault.object


def test_pages_are_counted_for_each_person(opened):
    sessions = [opened() for _ in range(PAGES)]
    with pytest.raises(BadInput, match=f"{PAGES} pages of yours"):
        opened()
    opened("bob")
    opened.shelf.hide(sessions[0].name)
    opened()


def test_pages_that_no_browser_holds_make_room_the_oldest_first(opened):
    sessions = [opened() for _ in range(PAGES)]
    runs = [going(sessions[n]) for n in (3, 5)]
    sessions[3].watched = sessions[5].watched = lambda: False
    opened()
    runs[0].ended.wait(300)
    assert sessions[3].run is None and "which no browser held" in sessions[3].said
    assert sessions[5].said == "" and sessions[5].is_going
    opened()
    assert sessions[5].run is None
    with pytest.raises(BadInput, match=f"{PAGES} pages of yours"):
        opened()
    sessions[3].watched = lambda: True  # somebody came to it after all
    opened.shelf.hide(sessions[0].name)
    with pytest.raises(BadInput, match=f"{PAGES} pages of yours"):
        opened()


def test_who_has_no_page_left_is_forgotten(opened):
    sessions = [opened(), opened()]
    for session in sessions:
        opened.shelf.hide(session.name)
    assert opened.shelf.people == {}


def test_room_is_made_by_older_runs_first_then_by_other_pages(opened, monkeypatch):
    monkeypatch.setattr(allowance, "EVENTS", 100)
    first, second = opened(), opened()
    for session, count in ((first, 5), (first, 6), (second, 7)):
        session.config = TOY.configured({"count": count})
        session.begin().wait(300)
    assert [len(session.runs) for session in (first, second)] == [2, 1]
    second.config = TOY.configured({"count": 20})
    second.begin().wait(300)  # 5 + 6 + 7 + 20 ticks of three events each
    second.config = TOY.configured({"count": 8})
    second.begin().wait(300)
    assert len(first.runs) == 1 and first.said == "", "what only waits to be compared goes first"
    second.config = TOY.configured({"count": 32})
    second.begin().wait(300)
    second.config = TOY.configured({"count": 32})
    third = opened()
    third.config = TOY.configured({"count": 3})
    third.begin().wait(300)
    assert first.runs == [] and "other pages" in first.said
    panel = StudyPanel(TOY, first)
    panel.look()
    assert panel.fault.visible and "needed the room" in panel.fault.object
    first.begin().wait(300)
    panel.look()
    assert not panel.fault.visible


def test_no_run_grows_past_what_all_may_keep_together(opened, monkeypatch):
    monkeypatch.setattr(allowance, "EVENTS", 40)
    session = opened()
    run = going(session)
    while not session.said:
        session.tend()
    run.ended.wait(300)
    assert "as long as they may be together" in session.said


class Names(RequestHandler):
    """Tells the name a request came with."""

    def get(self):
        self.set_header("Content-Type", self.get_argument("kind", "text/html"))
        self.finish(self.request.cookies[COOKIE].value)


def test_a_browser_gets_one_name_and_keeps_it():
    async def asked():
        application = Application([("/", Names)])
        greet(application)
        server = HTTPServer(application)
        server.listen(0, "127.0.0.1")
        port = next(iter(server._sockets.values())).getsockname()[1]
        client, place = SimpleAsyncHTTPClient(force_instance=True), f"http://127.0.0.1:{port}/"
        first = await client.fetch(place)
        name = first.headers["Set-Cookie"].partition(";")[0]
        again = await client.fetch(place, headers={"Cookie": f"other=1; {name}"})
        file = await client.fetch(f"{place}?kind=text/css")
        server.stop()
        return first, name, again, file

    first, name, again, file = asyncio.run(asked())
    assert "HttpOnly" in first.headers["Set-Cookie"] and "SameSite" in first.headers["Set-Cookie"]
    assert name == f"{COOKIE}={first.body.decode()}"
    assert again.body == first.body and "Set-Cookie" not in again.headers
    assert file.body != first.body and "Set-Cookie" not in file.headers
