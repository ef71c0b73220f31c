"""Sources take turns: who brought many requests keeps nobody waiting who brought one."""

import pytest

from engine.core.events import Branch
from engine.inference.requests.request import Request, Source
from tests.engine.inference.small import engine, request, serve


def started(events: list) -> list[str]:
    return [e.thread for e in events if isinstance(e, Branch) and e.state == "running"]


def of_one_source(requests: list[Request]) -> list[Request]:
    source = Source()
    for one in requests:
        one.source = source
    return requests


def test_sources_take_turns_and_those_alone_go_by_arrival():
    held, events = engine(ordering="by_turns", max_running=1)
    first, second = (of_one_source([request(4, 10 * of + n) for n in range(4)]) for of in (1, 2))
    for one in [*first, *second, request(4, 31), request(4, 32)]:
        held.add(one)
    held.run()
    # Nobody has a row when the only one is free: all are equal, and go by arrival.
    assert started(events) == [f"r{n}" for n in range(10)]
    held, events = engine(ordering="by_turns", max_running=3)
    first, second = (of_one_source([request(4, 10 * of + n) for n in range(4)]) for of in (1, 2))
    for one in [*first, *second, request(4, 31), request(4, 32)]:
        held.add(one)
    held.step()
    assert started(events) == ["r0", "r4", "r8"]
    held.run()
    assert all(one.over for one in [*first, *second]) and first[0].source.running == 0


def test_one_calls_prompts_keep_a_later_call_waiting_for_one_step_at_most():
    """64 prompts of 63 tokens in a step of 128: first come first served takes 32 steps of them."""

    def waited(ordering: str, beside: str = "") -> int:
        held, _ = engine(ordering=ordering, max_running=64, step_tokens=128, pages=3000)
        many = of_one_source([request(63, n, max_tokens=100) for n in range(64)])
        for one in many:
            held.add(one)
        for _ in range(50 if beside == "all rows" else 3):
            held.step()
        assert beside != "all rows" or len(held.scheduler.running.requests) == 64
        late, step = request(30, 99, max_tokens=1), held.number
        held.add(late)
        while not late.over:
            held.step()
        took = held.number - step
        held.run()
        assert all(len(one.generated) == 100 for one in many)
        return took

    assert waited("by_turns") <= 2 < 20 < waited("fcfs")
    assert waited("by_turns", "all rows") <= 2


@pytest.mark.parametrize("waits", ["fcfs", "by_turns"])
def test_samples_that_fill_the_batch_keep_nobody_waiting_where_sources_take_turns(waits):
    held, _ = engine(ordering=waits, max_running=8, pages=400)
    alone = request(9, 1, max_tokens=60)
    held.add(alone)
    held.step()
    samples, late = request(9, 2, max_tokens=50, n=8), request(9, 3, max_tokens=2)
    held.add(samples)
    held.add(late)
    for _ in range(4):
        held.step()
    assert late.over == (waits == "by_turns")
    assert (samples.state == "queued") == (waits == "fcfs")
    held.run()
    assert alone.over and samples.over and samples.source.running == 0


def test_samples_that_wait_for_rows_answer_as_those_that_begin_together():
    def answers(**fields):
        held, _ = engine(pages=400, **fields)
        one, made = request(9, 2, max_tokens=12, n=6, temperature=1.0), {}
        one.on_end = lambda ended: made.update({ended.id: ended.generated.tolist()})
        serve(held, [request(7, 1, max_tokens=30), one])
        return made

    together = answers(max_running=8)
    assert len(together) == 6
    assert answers(ordering="by_turns", max_running=8) == together
    assert answers(ordering="by_turns", max_running=6) == together


def test_turns_end_where_sources_have_as_many():
    """Two calls of many prompts share the rows evenly, and nobody is taken out again and again."""
    held, events = engine(ordering="by_turns", max_running=8, pages=800, step_tokens=200)
    first, second = (
        of_one_source([request(8, 100 * of + n, max_tokens=60) for n in range(8)]) for of in (1, 2)
    )
    for one in first:
        held.add(one)
    for _ in range(3):
        held.step()
    for one in second:
        held.add(one)
    for _ in range(10):
        held.step()
    assert [one[0].source.running for one in (first, second)] == [4, 4]
    assert sum(isinstance(e, Branch) and e.state == "preempted" for e in events) == 4
    held.run()
    assert all(len(one.generated) == 60 for one in [*first, *second])
