"""What Python sends to a component's browser: it arrives there and is heard nowhere else."""

import param
import pytest

pytest.importorskip("panel")

from widgets.page.component import Component


class Plain(Component):
    _esm = "export default { render() {} }"

    count = param.Number(default=0)
    data_bytes = param.Bytes(default=b"")


@pytest.fixture
def plain():
    made = Plain()
    made.told = []
    made.param.watch(lambda *events: made.told.extend(events), ["count", "data_bytes"])
    return made


def test_without_a_page_traits_are_set_and_nobody_is_told(plain):
    plain.send(count=3, data_bytes=b"abc")
    assert (plain.count, plain.data_bytes) == (3, b"abc") and plain.told == []


def test_in_a_page_the_model_has_it_and_it_is_not_taken_for_a_persons_doing(plain, monkeypatch):
    ref = plain.get_root().ref["id"]
    data = plain._models[ref][0].data
    heard = []
    monkeypatch.setattr(Plain, "_is_here", lambda self, ref: True)
    monkeypatch.setattr(Plain, "_change_event", lambda self, doc: heard.append(self._events))
    plain.send(count=3, data_bytes=b"abc")
    assert (data.count, data.data_bytes) == (3, b"abc")
    assert heard == [] and plain.told == [] and ref not in plain._changing
    data.count = 4  # as a browser does
    assert heard == [{"count": 4}]


def test_on_another_page_it_goes_the_usual_way(plain):
    ref = plain.get_root().ref["id"]
    assert not plain._is_here(ref)
    plain.send(count=5)
    assert plain.count == 5 and [event.new for event in plain.told] == [5]
