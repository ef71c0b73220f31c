"""What a client sees of the engine: steps, events, shared prefixes, refusals."""

import threading

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Page, Span, Token
from engine.inference.requests.request import Request, sampling
from tests.engine.inference.audit import audit
from tests.engine.inference.memory import VOCAB
from tests.engine.inference.small import engine, request, serve, states


def test_a_request_is_queued_then_runs_then_finishes_and_leaves_no_page():
    held, events = engine()
    serve(held, [request(10, max_tokens=5)])
    assert states(events, "r0") == ["queued", "running", "finished"]
    tokens = [e for e in events if isinstance(e, Token)]
    assert len(tokens) == 5 and all(e.thread == "r0" for e in tokens)
    assert held.cache.held == 0
    prefill = [e.tag for e in events if isinstance(e, Span) and e.name == "prefill"]
    assert prefill == ["0:10"]
    steps = [e.tag for e in events if isinstance(e, Span) and e.name == "step"]
    assert steps[:2] == ["decode=0 prefill=10", "decode=1 prefill=0"]


def test_events_come_in_time_order_and_levels_only_on_change():
    held, events = engine()
    serve(held, [request(20, seed) for seed in range(12)])
    times = [e.time for e in events]
    assert times == sorted(times)
    last: dict[str, float] = {}
    for event in events:
        if isinstance(event, Level):
            assert last.get(event.name) != event.value
            last[event.name] = event.value
    assert last["running"] == last["waiting"] == last["pages_used"] == 0


def test_long_prompts_are_computed_in_chunks_beside_decodes():
    held, events = engine(step_tokens=16, pages=200)
    serve(held, [request(4, 1, max_tokens=30), request(100, 2)])
    chunks = [e.tag for e in events if isinstance(e, Span) and e.lane == "r1"]
    assert len(chunks) > 5
    stops = [int(tag.split(":")[1]) for tag in chunks[:-1]]
    assert all(stop % 4 == 0 for stop in stops), "chunks end with pages"
    mixed = [e.tag for e in events if isinstance(e, Span) and e.name == "step"]
    assert any(not t.startswith("decode=0") and not t.endswith("prefill=0") for t in mixed)
    for tag in mixed:
        assert sum(int(part.split("=")[1]) for part in tag.split()) <= 16


def test_a_prefix_computed_before_is_found_and_said_so():
    held, events = engine()
    first = request(20, 1)
    again = Request(np.concatenate([first.prompt, first.prompt[:3]]), sampling(max_tokens=4))
    serve(held, [first])
    serve(held, [again])
    texts = [e.text for e in events if isinstance(e, Mark) and e.name == "lookup"]
    assert texts == ["request r0 hit 0 of 20 tokens", "request r1 hit 20 of 23 tokens"]
    hits = [e.page for e in events if isinstance(e, Page) and e.state == "hit"]
    assert len(hits) == 5
    chunks = [e.tag for e in events if isinstance(e, Span) and e.lane == "r1"]
    assert chunks == ["20:23"]


def test_prompts_that_arrive_together_share_what_one_of_them_computes():
    held, events = engine(step_tokens=64)
    same = request(21, 1).prompt
    serve(held, [Request(same, sampling(max_tokens=3)) for _ in range(4)])
    computed = [e.tag for e in events if isinstance(e, Span) and e.name == "prefill"]
    assert sorted(computed) == ["0:21", "20:21", "20:21", "20:21"]


def test_another_salt_shares_nothing():
    held, events = engine()
    one, other = request(20, 1), request(20, 1)
    other.salt = "somebody else"
    serve(held, [one])
    serve(held, [other])
    assert not [e for e in events if isinstance(e, Page) and e.state == "hit"]
    assert one.generated.tolist() == other.generated.tolist()


def test_a_request_the_cache_can_never_hold_is_rejected_and_the_rest_go_on():
    held, events = engine(pages=8)
    giant = request(20, 1, max_tokens=100)
    small = request(6, 2, max_tokens=4)
    serve(held, [giant, small])
    assert giant.state == "rejected" and small.state == "finished"
    assert giant.reason == "needs 30 pages for 120 tokens, the whole cache has 8"
    assert states(events, "r0") == ["queued", "rejected"]
    assert any(isinstance(e, Mark) and e.name == "reject" for e in events)


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ([], "the prompt is empty"),
        ([0] * 5000, "the model takes 4096"),
        ([VOCAB], "outside 0 to"),
        ([-1], "outside 0 to"),
        ([[1, 2]], "the prompt is empty"),
        ("text", "no list of token numbers"),
    ],
)
def test_a_prompt_that_makes_no_sense_is_bad_input(prompt, says):
    held, _ = engine()
    with pytest.raises(BadInput, match=says):
        held.add(Request(prompt))
    assert not held.busy


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 0},
        {"n": 0},
        {"temperature": float("nan")},
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"top_k": -1},
        {"min_p": 1.5},
        {"repetition_penalty": 0.0},
        {"logit_bias": [(1, float("inf"))]},
        {"stop_tokens": [-3]},
        {"colour": "red"},
    ],
)
def test_sampling_that_makes_no_sense_is_bad_input(fields):
    with pytest.raises(BadInput):
        sampling(**fields)


def test_unknown_ids_are_ignored():
    held, _ = engine()
    held.abort("nobody")
    held.fork("nobody")
    assert serve(held, [request()])[0]


def test_an_id_in_use_is_rejected_and_the_first_goes_on():
    held, _ = engine()
    one, two = request(draw=1), request(draw=2)
    one.id = two.id = "mine"
    serve(held, [one, two])
    assert (one.state, two.state) == ("finished", "rejected")


def test_an_engine_that_has_served_forgets_its_clients():
    held, _ = engine(pages=200)
    serve(held, [request(8, n, max_tokens=3, n=2) for n in range(30)])
    assert not held.requests and not held.requests._forks
    assert not held.scheduler.admission.waiting_forks and not held.pieces.held


def test_threads_can_add_and_abort_while_the_loop_runs():
    held, _ = engine(pages=400, max_running=32)
    requests = [request(8, seed, max_tokens=6) for seed in range(120)]

    def client(part: list[Request]) -> None:
        for number, one in enumerate(part):
            name = held.add(one)
            if number % 3 == 0:
                held.abort(name)

    threads = [threading.Thread(target=client, args=(requests[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or held.busy:
        held.step()
    assert len({one.id for one in requests}) == 120
    assert all(one.over for one in requests)
    audit(held)


def test_reset_empties_the_tree_and_nothing_else():
    held, _ = engine()
    serve(held, [request(20, 1)])
    assert held.cache.cached > 0
    held.reset()
    held.step()
    assert held.cache.cached == 0 and held.cache.pool.free == 64


@pytest.mark.parametrize("fields", [{"logit_bias": [(VOCAB, 1.0)]}, {"stop_tokens": [VOCAB]}])
def test_a_wish_about_a_token_the_model_has_not_is_bad_input(fields):
    held, _ = engine()
    with pytest.raises(BadInput, match=rf"{next(iter(fields))}.*outside 0 to {VOCAB - 1}"):
        held.add(request(5, 1, **fields))
    assert not held.busy
