"""Limits on latencies: the share that kept each, and the goodput of those that kept all."""

from engine.core.events import Branch, Token
from widgets.chart.plots import frame_of
from widgets.views.latency.draw import LatencyDrawing
from widgets.views.latency.fold import LatencyFold


def folded(fold, events):
    for event in events:
        fold.add(event)
    return fold.frame()


def test_a_promise_says_who_kept_it():
    drawing = LatencyDrawing()
    queued = [Branch(float(i), f"r{i}", "", "queued") for i in range(4)]
    spoken = [Token(i + 0.1 * (i + 1), f"r{i}", "a") for i in range(4)]
    events = sorted([*queued, *spoken], key=lambda event: event.time)
    drawing.show(folded(LatencyFold(), events), 9.0)
    drawing.promise("time_to_first_token", 0.25)
    assert drawing.shown.plots[0].limits[0].text == "50 % within 250 ms"
    drawing.promise("time_to_first_token", None)
    assert not drawing.shown.plots[0].limits


def test_a_limit_that_is_dragged_gives_the_share_and_the_goodput():
    drawing = LatencyDrawing()
    events = []
    for i in range(4):  # first tokens after 0.1 to 0.4 s, then 0.1 s a token; the last goes on
        first = i + 0.1 * (i + 1)
        events += [Branch(float(i), f"r{i}", "", "queued"), Token(first, f"r{i}", "a")]
        if i < 3:
            events += [Token(first + 0.1, f"r{i}", "b"), Branch(i + 0.9, f"r{i}", "", "finished")]
    drawing.show(folded(LatencyFold(), events), 4.0)
    assert drawing.shown.figures[-1] == ("3", "finished, 3 in all")
    drawing._heard("window", {"pixels": 300, "limit_0": 0.25, "limit_1": 0.2})
    assert drawing.shown.plots[0].limits[0].text == "50 % within 250 ms"
    assert drawing.shown.plots[2].limits == ()
    # Two of the three that finished, in the 3.4 s that there were events of.
    assert drawing.shown.figures[-1] == ("0.588 /s", "goodput, 2 of 3 within each limit")
    drawing._heard("window", {"pixels": 300, "limit_0": 0.25, "limit_1": 0.05})
    assert drawing.shown.figures[-1] == ("0 /s", "goodput, 0 of 3 within each limit")
    drawing._heard("window", {"pixels": 300, "limit_0": "x", "limit_2": float("nan")})
    assert not any(plot.limits for plot in drawing.shown.plots)
    assert not frame_of(drawing.shown, {"static": True})["plots"][0]["promised"]
