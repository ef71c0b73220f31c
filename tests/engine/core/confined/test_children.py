"""Warm children: who is asked next after one was over its limits."""

import pytest

from engine.core.confined.children import Children
from engine.core.errors import BadInput
from engine.core.limits import changed

WORK = {"messages": [], "values": {}}
LONG = "{% for a in range(30000) %}{% for b in range(30000) %}{% endfor %}{% endfor %}"


def test_after_one_is_over_its_limits_another_that_is_warm_answers():
    children = Children("engine.models.text.render_child", "chat template")
    try:
        with changed(template_seconds=0.05):
            for _ in range(2):
                with pytest.raises(BadInput, match="template_seconds"):
                    children.ask(template=LONG, **WORK)
                ready = list(children._free.queue)
                assert len(ready) == 2 and None not in ready, "both have been started"
        assert children.ask(template="a", **WORK) == "a"
        warm = children._free.queue[-1]
        with changed(template_seconds=0.05), pytest.raises(BadInput):
            children.ask(template=LONG, **WORK)
        assert warm not in children._free.queue, "it was asked, since it was warm"
        fresh = children._free.queue[0]
        assert children.ask(template="b", **WORK) == "b"
        assert children._free.queue[0] is fresh, "who has only been started is asked last"
    finally:
        children.close()
