"""What a page's browser sends is let in where our pages send it; the log keeps a line of it."""

import asyncio
import base64
import gzip
import logging

import pytest
from bokeh.document import Document
from bokeh.models import Div, Plot, Spinner
from bokeh.protocol import Protocol
from bokeh.protocol.receiver import Receiver
from panel.widgets import Select

from workbench.pages.frame.received import (
    BYTES,
    EVENTS,
    LOGS,
    NEW,
    ROOT,
    Received,
    Short,
    no_text,
    told,
    unlike_ours,
)

SET = {"kind": "ModelChanged", "model": {"id": "p1"}, "attr": "value", "new": 3}


def packed(size, times=1, behind=b""):
    """Zeros as Bokeh sends bytes: gzip in base64; `behind`: what follows and is none."""
    data = base64.b64encode(gzip.compress(bytes(size)) * times + behind).decode()
    return {"type": "bytes", "data": data}


DIV = {"type": "object", "name": "Div", "id": "z1"}


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("PATCH-DOC", {"events": [SET]}),
        ("PATCH-DOC", {"events": [SET | {"new": [DIV]}, {"kind": "MessageSent"}]}),
        ("PULL-DOC-REQ", {}),
        ("PATCH-DOC", {"events": [SET | {"new": packed(1000)}]}),
        ("PATCH-DOC", {"events": [SET | {"new": {"type": "bytes", "data": "no base64"}}]}),
        ("ACK", {}),
    ],
)
def test_what_pages_send_is_let_in(kind, content):
    assert unlike_ours(kind, content) is None


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("PUSH-DOC", {"doc": {}}),
        ({}, {}),
        ("PATCH-DOC", None),
        ("PATCH-DOC", {"events": SET}),
        ("PATCH-DOC", {"events": [5]}),
        ("PATCH-DOC", {"events": [{"kind": "RootAdded", "model": DIV}]}),
        ("PATCH-DOC", {"events": [SET] * (EVENTS + 1)}),
        ("PATCH-DOC", {"events": [SET | {"new": [packed(BYTES // 8, 9)]}]}),
        ("PATCH-DOC", {"events": [SET | {"new": [packed(BYTES // 8, 1, b"none")] * 9}]}),
        ("PATCH-DOC", {"events": [SET | {"new": {"a": [DIV] * (NEW + 1)}}]}),
    ],
)
def test_what_no_page_sends_is_refused(kind, content):
    assert unlike_ours(kind, content)


@pytest.mark.parametrize("new", [5, True, ["a"], {"type": "map"}, {"type": "number"}])
def test_where_a_page_has_text_it_takes_no_other_value(new):
    document, text, number = Document(), Div(text="a"), Spinner(value=1)
    for each in (text, number):
        document.add_root(each)
    wild = SET | {"model": {"id": text.id}, "attr": "text", "new": new}
    assert no_text([wild], document) == "text: takes text"
    others = ({"new": "b"}, {"new": None}, {"attr": "none"}, {"model": {"id": [1]}}, {"model": 5})
    others += ({"model": {"id": number.id}, "attr": "value"}, {"attr": 3}, {"kind": "MessageSent"})
    assert no_text([wild | other for other in others], document) is None


def test_what_was_never_set_may_be_told_by_a_browser():
    document, plot = Document(), Plot()
    document.add_root(plot)
    width = SET | {"model": {"id": plot.id}, "attr": "inner_width", "new": 300}
    assert no_text([width], document) is None


def said(caplog, file):
    """What the log says of a fault that a function of `file` raised."""
    code = compile("def fail():\n    raise ValueError('a' * 9000)", file, "exec")
    held: dict = {}
    exec(code, held)
    log = logging.getLogger("tests.received")
    log.addFilter(only := Short())
    try:
        held["fail"]()
    except ValueError:
        log.error("message %r", "secret" * 100, exc_info=True)
    log.removeFilter(only)
    return caplog.text


def test_of_a_refused_message_the_log_has_a_line_and_of_our_own_fault_all(caplog):
    line = said(caplog, "/elsewhere/site-packages/bokeh/x.py")
    assert "ValueError" in line and len(line) < 400 and "secret" not in line
    caplog.clear()
    assert "Traceback" in said(caplog, f"{ROOT}/workbench/pages/runs.py")


def test_of_a_choice_that_was_not_offered_the_log_has_a_line(caplog):
    select = Select(options=["a", "b"], value="a")
    only = Short()
    for name in LOGS:
        logging.getLogger(name).addFilter(only)
    with pytest.raises(ValueError):
        select._process_events({"value": "../../etc/passwd"})
    for name in LOGS:
        logging.getLogger(name).removeFilter(only)
    assert "refused" in caplog.text and "Traceback" not in caplog.text and select.value == "a"


def test_after_a_message_that_is_none_nothing_of_that_page_is_read(caplog):
    closed = []

    class Link:
        def close(self, code, reason):
            closed.append(reason)

    page = Received.__new__(Received)
    page.ws_connection, page.receiver = Link(), Receiver(Protocol())

    async def send():
        for _ in range(1000):
            await page.on_message("no JSON")

    asyncio.run(send())
    assert len(closed) == 1 and len(caplog.records) <= 2


def test_the_browser_hears_a_line_of_a_fault_and_no_path_of_this_machine():
    heard = told({"text": "no\nsuch " + "x" * 9000, "traceback": 'File "/elsewhere/bokeh/x.py"'})
    assert heard["text"].startswith("no such x") and len(heard["text"]) <= 200
    assert heard["traceback"] is None
