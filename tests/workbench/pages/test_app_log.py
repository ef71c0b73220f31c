"""What the server's log leaves out: tabs that closed while something was sent to them."""

import logging

import pytest
from tornado.websocket import WebSocketClosedError

from workbench.pages.app import TabsThatWent


@pytest.mark.parametrize(("fault", "said"), [(WebSocketClosedError(), 0), (ValueError("no"), 1)])
def test_a_tab_that_went_is_nothing_to_log(fault, said, caplog):
    log = logging.getLogger("tests.app_log")
    log.addFilter(TabsThatWent())
    log.error("Task exception was never retrieved", exc_info=fault)
    assert len(caplog.records) == said
    log.error("plain words")
    assert len(caplog.records) == said + 1
