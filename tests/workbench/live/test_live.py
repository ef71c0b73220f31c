"""The live engine: answers come piece by piece, aborts free everything, trouble is told."""

import dataclasses
import queue
import sys
import time

import pytest

from engine.core.errors import BadInput
from engine.core.events import Blob, Branch, Token
from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from engine.inference.requests.request import sampling
from tests.workbench.toy_engine import toy_live
from workbench.live import live as live_module
from workbench.live.live import LiveEngine
from workbench.live.measure_while_paused import still


@pytest.fixture
def live():
    made = toy_live()
    yield made
    made.close()


def answers(live, prompt, **wish):
    """Ask and wait: text and reason of each answer."""
    pieces = queue.SimpleQueue()
    live.ask(live.prompts.encode(prompt), sampling(**wish), pieces.put)
    texts, reasons = {}, {}
    while len(reasons) < wish.get("n", 1):
        piece = pieces.get(timeout=300)
        texts[piece.index] = texts.get(piece.index, "") + piece.text
        if piece.reason:
            reasons[piece.index] = piece.refused or piece.reason
    return [(texts[i], reasons[i]) for i in sorted(texts)]


def test_an_answer_comes_in_pieces(live):
    assert answers(live, "abc", max_tokens=4) == [("defg", "length")]


def test_a_stop_text_ends_it(live):
    assert answers(live, "a", max_tokens=20, stop=["fg"]) == [("bcde", "stop")]


def test_samples_have_their_own_places(live):
    assert answers(live, "xa", max_tokens=3, n=3) == [("bcd", "length")] * 3


def test_every_step_is_in_the_run_s_log(live):
    answers(live, "abc", max_tokens=4)
    log = live.run.log
    assert log.opened.facts["pages"] == 64
    assert log.opened.facts["model"] == "toy"
    assert [event.text for event in log.of(Token)] == list("defg")
    assert log.of(Branch)[-1].state == "finished"


def test_an_impossible_prompt_is_refused_and_the_engine_goes_on(live):
    with pytest.raises(BadInput, match="300 tokens"):
        answers(live, "a" * 300, max_tokens=4)
    with pytest.raises(BadInput, match="empty"):
        answers(live, "", max_tokens=4)
    assert answers(live, "a", max_tokens=1) == [("b", "length")]


def test_more_samples_than_can_run_are_refused_each(live):
    found = answers(live, "a", max_tokens=2, n=200)
    assert len(found) == 200
    assert {reason for _, reason in found} == {"asks for 200 samples, 64 can run"}


def test_an_abort_ends_the_answer():
    live = toy_live(seconds=0.02)
    pieces = queue.SimpleQueue()
    ticket = live.ask(live.prompts.encode("abc"), sampling(max_tokens=200), pieces.put)
    pieces.get(timeout=300)
    live.abort(ticket)
    piece = pieces.get(timeout=300)
    while not piece.reason:
        piece = pieces.get(timeout=300)
    assert piece.reason == "abort"
    live.abort(ticket)  # once more does no harm
    assert live.run.log.of(Branch)[-1].state == "aborted"
    live.close()


def test_closing_ends_every_answer():
    live = toy_live(seconds=0.02)
    pieces = queue.SimpleQueue()
    live.ask(live.prompts.encode("abc"), sampling(max_tokens=200, n=2), pieces.put)
    pieces.get(timeout=300)
    live.close()
    reasons = set()
    while len(reasons) < 2:
        piece = pieces.get(timeout=300)
        if piece.reason:
            reasons.add(piece.index)
    with pytest.raises(BadInput, match="closed"):
        live.ask([1], sampling(), pieces.put)


def test_a_model_that_cannot_be_read_is_told_to_whoever_waits():
    live = LiveEngine(InferenceConfig(model="no-such-model")).start()
    with pytest.raises(BadInput, match="no-such-model"):
        live.wait(300)
    with pytest.raises(BadInput, match="no-such-model"):
        live.ask([1], sampling(), print)


def test_a_long_run_gives_way_to_a_fresh_one(monkeypatch):
    monkeypatch.setattr(live_module, "LONG", 50)
    live = toy_live()
    first = live.wait().run
    answers(live, "abc", max_tokens=100)
    assert answers(live, "abc", max_tokens=2) == [("de", "length")]
    assert live.run is not first
    assert first.wait(300).log.closed.reason == "finished"
    live.close()


def test_an_answer_comes_from_the_run_that_is_known_as_the_present_one(monkeypatch):
    begin = live_module.Run.start

    def slowly(*given, **wishes):
        run = begin(*given, **wishes)
        time.sleep(0.3)  # as where the thread that begins a run loses its turn to the run's own
        return run

    live = toy_live()
    first = live.wait().run
    monkeypatch.setattr(live_module, "LONG", 50)
    monkeypatch.setattr(live_module.Run, "start", slowly)
    answers(live, "abc", max_tokens=100)
    answers(live, "abc", max_tokens=2)
    assert live.run is not first
    live.close()


def test_no_more_than_so_many_wait(monkeypatch):
    monkeypatch.setattr(live_module, "WAITING", 2)
    live = toy_live(seconds=0.02)
    for _ in range(2):
        live.ask([1], sampling(max_tokens=200), lambda piece: None)
    with pytest.raises(BadInput, match="try again later"):
        live.ask([1], sampling(), print)
    live.close()


def test_measuring_the_machine_begins_a_run_whose_header_carries_the_roofs(monkeypatch):
    def measured(executor, again):
        executor.facts = dataclasses.replace(executor.facts, roofs=({"name": "DRAM read"},))

    monkeypatch.setattr(live_module, "measure_roofs", measured)
    live = toy_live()
    first = live.wait().run
    assert first.log.opened.facts["roofs"] == []
    first.tell(do="measure")
    first.wait(300)
    answers(live, "abc", max_tokens=2)
    assert live.run is not first
    assert live.run.log.opened.facts["roofs"] == [{"name": "DRAM read"}]
    live.close()


def test_threads_take_short_turns_where_an_engine_serves(live):
    assert sys.getswitchinterval() <= 1e-3


def test_a_masked_diffusion_model_fills_in_what_is_asked_of_it():
    live = LiveEngine(InferenceConfig(model=str(dataset("diffusion/lists-diffusion-150k")))).start()
    try:
        assert answers(live, "copy 3 1 4 – – =", max_tokens=3) == [(" 3 1 4", "length")]
        assert [event.name for event in live.run.log.of(Blob)][-1] == "unmasking/r0/2"
        with pytest.raises(BadInput, match="a block of 64 masks; the model takes 16 together"):
            answers(live, "copy 3 1 4 – – =", max_tokens=64)
        with pytest.raises(BadInput, match="is not decided by n; leave it out"):
            answers(live, "copy 3 1 4 – – =", max_tokens=3, n=2)
    finally:
        live.close()


def test_the_engine_stands_still_while_roofs_are_measured_and_a_paused_one_stays_so(live):
    run = live.wait().run
    with still(run):
        assert run.state == "paused"
    assert run.state == "running"
    run.pause()
    with still(run):
        pass
    assert run.state == "paused"
    run.resume()
