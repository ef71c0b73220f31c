"""Abort in every state a request can be in, with every operation that can be pending."""

import itertools

import pytest

from engine.core.events import Branch
from tests.engine.inference.audit import Reader, audit
from tests.engine.inference.small import engine, request

STATES = [
    "in the inbox",
    "queued",
    "between chunks",
    "prompt just complete",
    "decoding",
    "decoding at a page's edge",
    "sharing a page to be copied",
    "preempted",
    "swapped",
    "returned from the host",
    "waiting for its parent's prompt",
    "parent of waiting samples",
    "padding of a static batch",
    "finished",
    "rejected",
    "aborted",
]
PENDING = ["nothing", "abort", "fork", "add", "reset", "preempt", "swap", "step"]


def bring(state: str):
    """An engine, and the id of a request in that state."""
    fields = {"host_pages": 64, "pages": 64}
    if state == "padding of a static batch":
        fields["batching"] = "static_batch"
    if state in ("queued", "between chunks", "waiting for its parent's prompt"):
        fields["step_tokens"] = 4
    if state == "parent of waiting samples":
        fields["step_tokens"] = 4
    if state in ("swapped", "returned from the host"):
        fields["preemption"] = "swap"
    held, events = engine(**fields)
    samples = 3 if "parent" in state or "copied" in state else 1
    one = request(14, 1, max_tokens=3 if "static" in state else 20, n=samples, temperature=1.0)
    if state == "rejected":
        one = request(14, 1, max_tokens=4000)
    held.add(request(9, 2, max_tokens=25))
    held.add(one)
    if state == "in the inbox":
        return held, events, one.id
    if state == "queued":
        held.hear()
        return held, events, one.id
    steps = {"between chunks": 4, "prompt just complete": 1, "decoding": 5}
    steps |= {"waiting for its parent's prompt": 4, "parent of waiting samples": 4}
    steps |= {"sharing a page to be copied": 1, "padding of a static batch": 6, "finished": 40}
    for _ in range(steps.get(state, 3)):
        held.step()
    preempting = state in ("preempted", "swapped", "returned from the host")
    if preempting:
        yield_now(held, one)
    if state == "returned from the host":
        held.step()
    if state == "aborted":
        held.abort(one.id)
        held.hear()
    child = "waiting" in state and "parent's" in state
    return held, events, f"{one.id}.1" if child else one.id


def yield_now(held, one) -> None:
    scheduler = held.scheduler
    if one.row >= 0 and not one.over:
        scheduler.preempt(one, scheduler.view(held.number, held.clock.now()), "a test says so")


def start(pending: str, held, name: str) -> None:
    """Begin an operation that has not been carried out when the abort comes."""
    if pending == "abort":
        held.abort(name)
    elif pending == "fork":
        held.fork(name)
    elif pending == "add":
        held.add(request(11, 3))
    elif pending == "reset":
        held.reset()
    elif pending in ("preempt", "swap"):
        one = held.requests.get(name)
        if one is not None:
            yield_now(held, one)
    elif pending == "step":
        held.step()


@pytest.mark.parametrize(("state", "pending"), [*itertools.product(STATES, PENDING)])
def test_abort_in_every_state_with_everything_pending(state, pending):
    held, events, name = bring(state)
    start(pending, held, name)
    held.abort(name)
    held.step()
    held.step()
    audit(held)
    assert name not in held.requests, "gone within two steps"
    ends = [
        e.state
        for e in events
        if isinstance(e, Branch)
        and e.thread == name
        and e.state in ("finished", "aborted", "rejected")
    ]
    assert len(ends) == 1, "one end and no more"
    held.run()
    audit(held)
    reader = Reader(64)
    reader.read(events)
    reader.agrees(held)
    assert held.cache.held == 0 and held.cache.host.free == 64
    assert held.scheduler.admission.reserved == 0


@pytest.mark.parametrize("state", [s for s in STATES if s != "in the inbox"])
def test_each_state_is_really_reached(state):
    held, _, name = bring(state)
    one = held.requests.get(name)
    if state in ("finished", "rejected", "aborted", "padding of a static batch"):
        assert one is None
        padded = held.scheduler.padded
        assert padded == (1 if state == "padding of a static batch" else 0)
        return
    rows, row = held.scheduler.rows, one.row
    expected = {
        "queued": one.state == "queued",
        "between chunks": row >= 0 and 0 < rows.cached[row] < 14,
        "prompt just complete": row >= 0 and rows.known[row] == 15,
        "decoding": row >= 0 and rows.known[row] > 15,
        "decoding at a page's edge": row >= 0 and rows.filled[row] == rows.cached[row],
        "sharing a page to be copied": row >= 0
        and held.cache.pool.references[rows.table(row)[-1]] > 1,
        "preempted": one.state == "preempted",
        "swapped": one.state == "swapped" and one.host_pages is not None,
        "returned from the host": row >= 0 and one.computed > 0,
        "waiting for its parent's prompt": row < 0 and one.state == "queued",
        "parent of waiting samples": one.keeps == 2,
    }
    assert expected[state]
