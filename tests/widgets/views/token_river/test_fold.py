"""The token river from hand-made events, and cut to a window without losing what is read."""

import math

import numpy as np

from engine.core.events import Branch, Closed, Opened, Span, Token
from tests.widgets.made_runs import serving
from tests.widgets.views.page_map.test_pool import same
from widgets.fold import History
from widgets.theme import figure
from widgets.views.request_lanes.detail import MOST
from widgets.views.token_river import TokenRiver
from widgets.views.token_river.detail import MOST_READ, reduce
from widgets.views.token_river.drafts import HELD, REFUSED, ROLLED_BACK, SAID
from widgets.views.token_river.fold import LONGEST


def folded(events) -> dict:
    fold = TokenRiver()
    for event in events:
        fold.add(event)
    return fold.frame()


def texts(frame: dict, lane: int | None = None) -> list[str]:
    """What the drawing reads: each token's text, of one lane or of all."""
    raw, stops = frame["text"].tobytes(), frame["token_stop"].tolist()
    cut = [raw[a:b].decode() for a, b in zip([0, *stops], stops, strict=False)]
    return [t for t, at in zip(cut, frame["token_lane"], strict=True) if lane in (None, at)]


def test_texts_come_back_as_they_were_said():
    said = ["<script>alert(1)</script>", "", " héllo", "分页", "\n", "\ud800", "🙂"]
    frame = folded(Token(i / 10, f"r{i % 2}", text) for i, text in enumerate(said))
    assert texts(frame) == [*said[:5], "?", said[6]]
    assert frame["token_lane"].tolist() == [0, 1, 0, 1, 0, 1, 0]


def test_a_very_long_token_is_cut_between_characters():
    assert texts(folded([Token(0.0, "r0", "é" * 500)])) == ["é" * (LONGEST // 2)]


def test_refused_drafts_are_marked_and_do_not_count():
    frame = folded(
        [Token(0.0, "r0", "a", -1.0), Token(0.5, "r0", "b", -9.0, accepted=False),
         Token(1.0, "r0", "c", -2.0)]
    )  # fmt: skip
    assert frame["token_accepted"].tolist() == [1, 0, 1]
    figures = dict(frame["figures"])
    assert figures["tokens"] == "2" and figures["mean log-probability"] == "−1.5"
    assert figures["drafts refused"] == "33.3 %" and figures["tokens per second"] == "2"


def test_a_token_that_was_impossible_has_a_finite_place():
    frame = folded([Token(0.0, "r0", "a", -math.inf)])
    assert np.isfinite(frame["token_logprob"]).all()


def test_every_token_of_a_run_is_there_in_order():
    log = serving(1, pages=128, requests=20, arrive=0.8)
    frame = folded(log)
    tokens = log.of(Token)
    assert texts(frame) == [t.text for t in tokens]
    assert frame["token_time"].tolist() == [t.time for t in tokens]
    ended = {e.thread for e in log.of(Branch) if e.state in ("finished", "aborted")}
    assert {n for n, t in zip(frame["names"], frame["ended"], strict=True) if t == t} == ended


def test_scrubbing_back_equals_a_fresh_fold(monkeypatch):
    monkeypatch.setattr("widgets.fold.KEEP_EVERY", 150)
    log = serving(1, pages=128, requests=20, arrive=0.8)
    history = History(log, TokenRiver())
    history.latest().frame()
    for share in (0.8, 0.2, 0.95, 0.5, 0.0):
        time = log.duration * share
        same(history.at(time).frame(), folded(e for e in log if e.time <= time))


def test_a_large_run_keeps_the_whole_text_of_the_request_that_is_read():
    events = [Token(i / 1000, f"r{i % 40}", f"{i} ") for i in range(60_000)]
    frame = folded([Opened(0.0, {}), *events])
    sent = reduce(frame, {"start": 0.0, "stop": 60.0, "first": 0, "last": 10, "reading": 7})
    assert sent["thinned"] and sent["tokens"] == 60_000
    assert len(sent["token_lane"]) <= MOST + MOST_READ
    assert texts(sent, 7) == texts(frame, 7)
    until = reduce(frame, {"start": 0.0, "stop": 60.0, "first": 0, "last": 10, "reading": 7,
                           "until": 30.0})  # fmt: skip
    early = [t for t in texts(frame, 7) if int(t) <= 30_000]
    assert [t for t in texts(until, 7) if int(t) <= 30_000] == early


def test_a_narrow_window_brings_every_token_in_it():
    frame = folded(Token(i / 1000, f"r{i % 40}", f"{i} ") for i in range(60_000))
    sent = reduce(frame, {"start": 20.0, "stop": 21.0, "first": 0, "last": 39})
    assert {f"{i} " for i in range(20_000, 21_001)} <= set(texts(sent))


def test_of_drafts_it_tells_what_became_of_each():
    said = [("r0", True, 0), ("r1", True, 0), ("r1", True, 0), ("r0", True, 0), ("r0", False, 0),
            ("r0", False, 0), ("r0", True, 0)]  # fmt: skip
    events = [Token(1.0, name, "x", -1.0, held, branch) for name, held, branch in said]
    events += [Token(2.0, "r0", "y", -1.0)]
    events += [Token(3.0, "r0", "z", -1.0, False, b) for b in (1, 1, 2)]
    frame = folded([*events, Token(3.0, "r0", "z", -1.0)])
    assert frame["token_part"].tolist() == [HELD, HELD, SAID, HELD, REFUSED, ROLLED_BACK, SAID,
                                            SAID, REFUSED, ROLLED_BACK, REFUSED, SAID]  # fmt: skip
    figures = dict(frame["figures"])
    assert figures["tokens a verification"] == "2", "three, two and one of three verifications"
    assert frame["drafting"] and len(figures) == 4


def test_tokens_of_one_moment_are_no_drafts_where_nothing_verifies():
    events = [Token(1.0, "r0", "x"), Token(1.0, "r0", "y")]
    assert folded(events)["token_part"].tolist() == [SAID, SAID]
    verify = Span(1.0, "verify", "verify", 0.5)
    assert folded([*events, verify])["token_part"].tolist() == [HELD, SAID], "all held"


def test_a_live_rate_is_over_the_last_seconds_and_a_finished_ones_over_the_whole():
    events = [Opened(0.0, {}), *(Token(float(n), "r0", "a") for n in range(10)),
              *(Token(100 + n / 10, "r0", "a") for n in range(1, 51))]  # fmt: skip
    live, done = folded(events), folded([*events, Closed(105.0, "finished")])
    assert dict(live["figures"])["tokens per second"] == "10"
    assert dict(done["figures"])["tokens per second"] == figure(60 / 105)
    assert live["running1_value"][-1] == done["running1_value"][-1] == 10.0
