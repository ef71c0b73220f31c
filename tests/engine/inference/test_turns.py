"""Sources take turns: who brought many requests keeps nobody waiting who brought one."""

import pytest

from engine.core.events import Branch
from engine.inference.requests.request import Request, Source
from tests.engine.inference.small import engine, request, serve

SERVED = {"kind": "decode_first", "chunk": 256}


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


def steps_until_over(held, late: Request) -> int:
    step = held.number
    held.add(late)
    while not late.over:
        held.step()
    return held.number - step


@pytest.mark.parametrize(("length", "tokens"), [(60, 100), (300, 100), (500, 10)])
def test_a_call_that_fills_the_cache_keeps_a_later_call_waiting_for_two_steps_at_most(
    length, tokens
):
    """As served: 512 pages of 16, of which the call's 64 prompts want up to four times as many."""
    for before in range(0, 120, 17):
        fields = {"max_running": 64, "step_tokens": 512, "pages": 512, "page_size": 16}
        held, _ = engine(ordering="by_turns", batching=SERVED, **fields)
        many = of_one_source([request(length, n, max_tokens=tokens) for n in range(64)])
        for one in many:
            held.add(one)
        for _ in range(before):
            held.step()
        assert steps_until_over(held, request(40, 99, max_tokens=1)) <= 2, before


def test_a_long_prompt_that_came_alone_keeps_a_short_one_waiting_for_two_steps_at_most():
    held, _ = engine(ordering="by_turns", pages=400, max_running=8, step_tokens=48)
    for n in range(3):
        held.add(request(400, n, max_tokens=1))
    for _ in range(4):
        held.step()
    assert len(held.scheduler.prefill) > 1
    assert steps_until_over(held, request(12, 99, max_tokens=1)) <= 2


def test_short_prompts_without_end_leave_the_longest_a_third_of_each_step():
    held, _ = engine(ordering="by_turns", pages=400, max_running=8, step_tokens=48)
    long = request(240, 1, max_tokens=1)
    held.add(long)
    for step in range(240 // 16 + 1):
        for n in range(4):  # more than a step computes
            held.add(request(16, 100 + 4 * step + n, max_tokens=1))
        held.step()
    assert long.over and len(held.scheduler.queue)


def test_nobody_yields_where_that_makes_too_little_room():
    """Of 40 pages a single request has 25, a call of two has 5 each; another prompt wants 20."""
    held, events = engine(ordering="by_turns", pages=40, max_running=8, step_tokens=200)
    for one in [request(98, 1, max_tokens=4), *of_one_source([request(18, 2), request(18, 3)])]:
        held.add(one)
    held.step()
    wants = request(78, 5, max_tokens=1)
    held.add(wants)
    held.step()
    assert wants.state == "queued"
    assert not any(isinstance(e, Branch) and e.state == "preempted" for e in events)
    held.run()
    assert wants.over


def call_beside_six_callers(patience: int, steps: int) -> tuple[list[Request], int]:
    """A call's six prompts on four rows, beside six callers who each ask again once they have their
    answer; the most steps that one of theirs waited."""
    held, _ = engine(
        ordering="by_turns", patience=patience, pages=400, max_running=4, step_tokens=64
    )
    many = of_one_source([request(4, n, max_tokens=60) for n in range(6)])
    asked = [request(4, 100 + n, max_tokens=3) for n in range(6)]
    came, most = dict.fromkeys(asked, 0), 0
    for one in [*many, *asked]:
        held.add(one)
    for step in range(1, steps):
        held.step()
        for n, one in enumerate(asked):
            if one.state != "queued" and one in came:
                most = max(most, step - came.pop(one))
            if one.over:
                asked[n] = again = request(4, 100 + step, max_tokens=3)
                came[again] = step
                held.add(again)
    return many, max(most, *(steps - begun for begun in came.values()))


def test_after_its_patience_a_call_has_two_rows_under_single_requests_without_end():
    """Two at a time, of 60 tokens, the second 20 steps after the first; 4 for a row to come free.
    The six then have two rows, which each of them keeps for 4 steps."""
    bound = 3 * (60 + 20 + 4)
    many, most = call_beside_six_callers(20, bound)
    assert all(one.over for one in many)
    assert most <= 6 // 2 * 4
    impatient, _ = call_beside_six_callers(10_000, bound)
    assert not all(one.over for one in impatient), "or the bound above could not fail"
