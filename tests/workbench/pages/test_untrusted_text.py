"""Text from outside (events, trace names, file names, faults) stays text in every page."""

import json
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import panel as pn
import pytest

from engine.core.events import Branch, Closed, Level, Mark, Opened, Page, Span, Token
from engine.core.log import Log
from engine.core.run import Run
from tests.workbench.api.test_gate import answering
from tests.workbench.toy_engine import toy_live
from widgets.export.export import page
from widgets.stage.compare import Compare
from widgets.stage.stage import Stage
from widgets.view import views
from workbench.api.access import access
from workbench.catalogue import Entry
from workbench.notebook.run_many import Result, index
from workbench.pages.app import make_server
from workbench.pages.catalogue import listing
from workbench.pages.compare import ComparePage
from workbench.pages.frame.shell import Shell, figures_table, message_page
from workbench.pages.runs import RunsPage
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.suggested_views import suggested_views
from workbench.traces.read import open_log

EVIL = (
    "<script>alert(7)</script>",
    "</script><script>alert(7)</script>",
    "<img src=x onerror=alert(7)>",
    "\"><svg onload='alert(7)'>",
    "' onmouseover='alert(7)' x='",
    "javascript:alert(7)",
    "<a href=javascript:alert(7)>x</a>",
    "]]><script>alert(7)</script><!--",
    "{{7*7}}{% raw %}<script>alert(7)</script>",
)
ADDRESSES = ("href", "src", "action", "formaction", "xlink:href", "data", "srcdoc")


class Reader(HTMLParser):
    """Reads HTML as a browser would and remembers what of ours has come alive."""

    def __init__(self):
        super().__init__()
        self.alive, self.inside = [], ""

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        for name, value in attributes:
            value = value or ""
            runs = name.startswith("on") and "alert(7)" in value
            leads = name in ADDRESSES and value.strip().lower().startswith("javascript:")
            if runs or leads or "alert(7)" in name:
                self.alive.append((tag, name, value[:60]))
            if name == "srcdoc":
                self.alive += alive(value)

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        # Text in a script of ours is data in quotes; a script that begins with it is another's.
        if self.inside == "script" and data.strip().startswith("alert(7)"):
            self.alive.append(("script", "", data[:60]))


def alive(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader.alive


def log_of(evil):
    """A run whose every text is `evil`."""
    log = Log()
    facts = {"lanes": [evil], "device": evil, "model": evil, "pages": 4, "page_size": 4}
    log.emit(Opened(0.0, {evil: evil}, study=evil, machine={"cpu": evil}, facts=facts))
    log.emit(Branch(0.1, evil, why=evil))
    log.emit(Page(0.2, 1, evil, "fill", 0, 4))
    log.emit(Token(0.3, evil, evil))
    log.emit(Level(0.4, evil, evil, 3.0))
    log.emit(Span(0.5, evil, evil, 0.1, flops=9.0, bytes=3.0, tag=f"phase={evil}"))
    log.emit(Mark(0.6, evil, evil, evil))
    log.emit(Branch(0.7, evil, state="aborted", why=evil))
    log.emit(Closed(0.8, evil))
    return log


def panes(thing):
    """The HTML of every pane on a page, whatever it is folded in."""
    found = [pane.object for pane in pn.panel(thing).select(pn.pane.HTML)]
    return [text for text in found if text]


@pytest.mark.parametrize("evil", EVIL)
def test_a_standing_page_of_any_view_keeps_text_text(evil):
    log = log_of(evil)
    made = [page(log, [name], title=evil) for name in views()]
    assert all("alert(7)" in text or "7*7" in text for text in made)
    assert not [found for text in made for found in alive(text)]


@pytest.mark.parametrize("evil", EVIL)
def test_the_app_s_panes_keep_text_text(evil):
    log = log_of(evil)
    shelf = Shelf()
    shelf.keep(Run(log), evil)
    shelf.keep(Run(log_of(evil + " ")), f"{evil} again")
    stage = Stage(list(views()))
    stage.open(Run(log))
    stage.tick()
    compare = Compare(list(shelf.runs.values()), suggested_views(log), list(shelf.runs))
    texts = [
        *panes(stage.__panel__()),
        *panes(compare.__panel__()),
        *panes(RunsPage(shelf).page().main[0]),
        *panes(ComparePage(shelf).page().main[0]),
        *panes(message_page(evil, evil).main[0]),
        figures_table([(evil, evil)], [evil]),
        listing([Entry(*[evil] * 8), Entry(*[evil] * 6)], dark=False),
    ]
    assert sum("alert(7)" in text for text in texts) >= 3
    assert not [found for text in texts for found in alive(text)]


@pytest.mark.parametrize("evil", EVIL)
def test_another_tools_trace_keeps_text_text(evil, tmp_path):
    span = {"ph": "X", "name": evil, "cat": evil, "pid": evil, "tid": evil, "ts": 1, "dur": 2}
    counter = {"ph": "C", "name": evil, "pid": 1, "tid": 1, "ts": 1, "args": {evil: 1}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": [span, counter]}))
    log = open_log(path)
    assert not alive(page(log, suggested_views(log)))


@pytest.mark.parametrize("evil", EVIL)
def test_a_report_of_notebooks_keeps_names_and_faults_text(evil, tmp_path):
    made = tmp_path / (evil.replace("/", "") + ".html")
    made.write_text("<p></p>")
    book = Path(evil.replace("/", "") + ".ipynb")
    text = index([Result(book, 1.0, 1, evil, made)], tmp_path).read_text()
    assert "alert(7)" in text and not alive(text)


def test_nothing_an_address_names_is_sent_back_in_the_answer():
    """A link is made by anyone; what it names comes over the websocket, as text of components."""
    live, shelf = toy_live(), Shelf()
    for evil in EVIL:
        shelf.keep(Run(log_of(evil)), evil)

    def make(port):
        return make_server(port, live, shelf, access("127.0.0.1", port)), ()

    with answering(make) as (port, _):
        for evil in EVIL:
            asked = urllib.parse.urlencode({"name": evil, "slug": evil, "file": "", "theme": evil})
            for place in ("run", "study"):
                address = f"http://127.0.0.1:{port}/{place}?{asked}"
                with urllib.request.urlopen(address, timeout=300) as answer:
                    text = answer.read().decode()
                assert "<html" in text and "alert(7)" not in text, (place, evil)
                assert not alive(text)
    live.close()


def test_the_reader_sees_what_comes_alive():
    assert alive(EVIL[0]) and alive(EVIL[2]) and alive(EVIL[6])
    assert alive(f"<p>{EVIL[3]}</p>".replace("p>", "b>", 1))
    assert alive("<a title='" + EVIL[4] + "'>")
    assert alive(f"<script>x = '{EVIL[1]}'</script>")
    assert not alive("<script>x = 'alert(7)'</script><b>javascript:alert(7)</b>")
    assert Shell(EVIL[0], "").title == EVIL[0]
