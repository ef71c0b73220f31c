"""Warm children: who is asked next after one was over its limits."""

import signal

import pytest

from engine.core.confined import children as module
from engine.core.confined.children import Children
from engine.core.errors import BadInput

WORK = {"messages": [], "values": {}}


def test_after_one_is_over_its_limits_another_that_is_warm_answers(monkeypatch):
    children = Children("engine.models.text.render_child", "chat template")

    def ends(child, asked, times):
        child.kill()
        child.wait()
        raise BadInput("over a limit")

    def spoil():
        with monkeypatch.context() as patch, pytest.raises(BadInput, match="over a limit"):
            patch.setattr(children, "_answer", ends)
            children.ask(template="", **WORK)

    try:
        for _ in range(2):
            spoil()
            ready = list(children._free.queue)
            assert len(ready) == 2 and None not in ready, "both have been started"
        assert children.ask(template="a", **WORK) == "a"
        warm = children._free.queue[-1]
        spoil()
        assert warm not in children._free.queue, "it was asked, since it was warm"
        _, other = children._free.queue
        assert children.ask(template="b", **WORK) == "b"
        assert children._free.queue[-1] is other, "who has only been started is asked last"
        both = list(children._free.queue)
    finally:
        children.close()
    assert all(child.returncode is not None for child in both), "none is left"


def test_one_that_somebody_stopped_goes_on_and_one_that_gives_no_answer_has_another_in_its_place(
    monkeypatch,
):
    children = Children("engine.models.text.render_child", "chat template")
    try:
        assert children.ask(template="a", **WORK) == "a"
        warm = children._free.queue[-1]
        warm.send_signal(signal.SIGSTOP)
        assert children.ask(template="b", **WORK) == "b"
        assert children._free.queue[-1] is warm
        monkeypatch.setattr(module, "PATIENCE", 0.0)
        with pytest.raises(BadInput, match="chat template: no answer within 0 s"):
            children.ask(template="c", **WORK)
        assert warm.returncode is not None
    finally:
        children.close()
