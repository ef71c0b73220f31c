"""Nobody waits for ever: bounds on waiting, over arrival patterns made to starve somebody."""

import numpy as np
import pytest

from engine.core.events import Branch
from engine.inference.requests.request import Request, Source
from tests.engine.inference.small import engine, request, serve

PATIENCE = 40


def served_alone(one: Request, budget: int) -> int:
    """Steps a request needs when it has the engine to itself."""
    return -(-len(one.prompt) // budget) + one.sampling.max_tokens


def adversary(pattern: str, draw: np.random.Generator) -> tuple[Request, list[tuple[int, Request]]]:
    """A victim, and (step, request) arrivals that go before it under an ordering without patience.

    At most one arrival in eight steps: less work than the engine can do, so that waiting is the
    ordering's doing and no overload's.
    """
    victim = request(40, 1, max_tokens=20)
    victim.user, victim.priority = "victim", 0
    arrivals = []
    for step in range(0, 400, 8):
        if pattern == "short":
            one = request(2, step, max_tokens=12)
        elif pattern == "urgent":
            one = request(6, step, max_tokens=14)
            one.priority = 9
        elif pattern == "new users":
            one = request(6, step, max_tokens=14)
            one.user = f"user {step}"
        elif pattern == "of one call":  # whose other request runs all the while
            one = request(2, step, max_tokens=12)
            if not step:
                one = request(2, step, max_tokens=24)
                one.source = victim.source = Source()
        elif pattern == "large":
            one = request(44, step, max_tokens=12)
        else:
            one = request(int(draw.integers(1, 30)), step, max_tokens=int(draw.integers(1, 16)))
            one.priority = int(draw.integers(5))
        arrivals.append((step, one))
    return victim, arrivals


ORDERINGS = ["fcfs", "shortest_first", "priority", "fair_share", "by_turns"]


@pytest.mark.parametrize("ordering", ORDERINGS)
@pytest.mark.parametrize(
    "pattern", ["short", "urgent", "new users", "of one call", "large", "mixed"]
)
def test_no_request_waits_longer_than_its_patience_and_the_work_before_it(ordering, pattern, full):
    for seed in range(25 if full else 3):
        draw = np.random.default_rng(seed)
        held, _ = engine(
            ordering=ordering,
            patience=PATIENCE,
            pages=18,
            max_running=2,
            step_tokens=16,
            preemption="recompute",
        )
        victim, arrivals = adversary(pattern, draw)
        came = 4 + int(draw.integers(4))
        done = None
        for step in range(3000):
            for one in [one for when, one in arrivals if when == step]:
                held.add(one)
            if step == came:
                held.add(victim)
            held.step()
            if victim.over and done is None:
                done = step
        # Stated bound: out of patience it is behind only those who ran out of theirs before it,
        # which are the arrivals of the steps before its own, and behind who runs already.
        before = [one for when, one in arrivals if when <= came + PATIENCE]
        bound = (
            PATIENCE + sum(served_alone(one, 16) for one in before) + 2 * served_alone(victim, 16)
        )
        assert done is not None and done - came <= bound
        assert all(one.over for _, one in arrivals)


def test_without_patience_the_same_arrivals_do_starve():
    held, _ = engine(ordering="priority", patience=10_000, pages=18, max_running=2, step_tokens=16)
    victim, arrivals = adversary("urgent", np.random.default_rng(0))
    held.add(victim)
    for step in range(400):
        for one in [one for when, one in arrivals if when == step]:
            held.add(one)
            extra = request(6, 1000 + step, max_tokens=14)
            extra.priority = 9
            held.add(extra)
        held.step()
    assert not victim.over, "or the bound above could not fail"


def test_without_patience_requests_that_come_alone_starve_a_call_whose_other_request_runs():
    held, _ = engine(ordering="by_turns", patience=10_000, pages=400, max_running=2, step_tokens=16)
    victim, arrivals = adversary("of one call", np.random.default_rng(0))
    _, first = arrivals[0]
    arrivals[0] = 0, request(2, 0, max_tokens=300)
    arrivals[0][1].source = first.source
    for step in range(250):
        for one in [one for when, one in arrivals if when == step]:
            held.add(one)
        if step == 4:
            held.add(victim)
        held.step()
    assert not victim.over, "or the bound above could not fail"


def test_the_head_of_the_queue_is_not_overtaken_by_what_fits():
    held, events = engine(pages=20, max_running=8, admission="reserve")
    giant, small = request(40, 2, max_tokens=30), request(4, 3, max_tokens=4)
    serve(held, [request(30, 1, max_tokens=30), giant, small])
    begun = [e.thread for e in events if isinstance(e, Branch) and e.state == "running"]
    assert begun == ["r0", "r1", "r2"]


def test_priorities_that_change_faster_than_a_prompt_is_computed_let_each_request_end():
    held, _ = engine(
        ordering={"kind": "changing_priority", "every": 1},
        patience=PATIENCE,
        max_running=1,
        step_tokens=4,
        prefix_sharing=False,
    )
    asked = [request(40, draw) for draw in range(3)]
    for one in asked:
        held.add(one)
    for _ in range(PATIENCE + sum(served_alone(one, 4) for one in asked) + PATIENCE):
        held.step()
    assert all(one.over for one in asked)
