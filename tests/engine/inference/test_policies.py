"""What each policy decides, seen in who runs when."""

import sys

import numpy as np
import pytest

from engine.core.config import kinds, to_dict, update
from engine.core.events import Branch, Move, Span
from engine.inference.config import InferenceConfig
from engine.inference.policies.admission import Admission
from engine.inference.policies.policy import Batching, Ordering, View
from engine.inference.policies.preemption import Preemption
from engine.inference.requests.request import Request, sampling
from tests.engine.inference.small import engine, request, serve


def started(events: list) -> list[str]:
    return [e.thread for e in events if isinstance(e, Branch) and e.state == "running"]


def steps(events: list) -> list[tuple[int, int]]:
    found = []
    for event in events:
        if isinstance(event, Span) and event.name == "step":
            parts = dict(part.split("=") for part in event.tag.split())
            found.append((int(parts["decode"]), int(parts["prefill"])))
    return found


def test_every_policy_serves_the_same_answers():
    def job():
        return [request(6 + 3 * n, n, max_tokens=4 + n % 5) for n in range(9)]

    truth = serve(engine(pages=200)[0], job())
    for field, base in (
        ("ordering", Ordering),
        ("admission", Admission),
        ("batching", Batching),
        ("preemption", Preemption),
    ):
        for kind in kinds(base):
            held, _ = engine(**{"pages": 40, "host_pages": 40, field: kind})
            made = job()
            held.prepare(made)
            assert serve(held, made) == truth, f"{field}={kind}"


BASES = (Ordering, Admission, Batching, Preemption)


@pytest.mark.parametrize("base", BASES)
def test_no_policy_writes_onto_a_request_or_what_it_is_shown(base, monkeypatch):
    """Whoever sets an attribute is asked for its module: none is one of the policies'."""
    field, writers = base.__name__.lower(), set()

    def spied(one, name, value):
        writers.add(sys._getframe(1).f_globals["__name__"])
        object.__setattr__(one, name, value)

    monkeypatch.setattr(Request, "__setattr__", spied)
    monkeypatch.setattr(View, "__setattr__", spied)
    for kind, policy in kinds(base).items():
        held, _ = engine(**{"pages": 40, "host_pages": 40, field: kind})
        made = job_of_groups(2, 3)
        held.prepare(made)
        serve(held, made)
        assert policy.__module__ not in writers
        with pytest.raises(ValueError, match="frozen"):
            getattr(held.config, field).memory = 1
    assert not {one for one in writers if one.startswith(tuple(each.folder for each in BASES))}
    assert "engine.inference.admission" in writers  # the spy sees who does write


def test_shortest_first_starts_with_the_least_work():
    held, events = engine(ordering="shortest_first", max_running=1)
    serve(held, [request(20, 1), request(5, 2), request(10, 3)])
    assert started(events) == ["r1", "r2", "r0"]


def test_priority_goes_first_and_takes_a_running_ones_place():
    held, events = engine(ordering="priority", max_running=1)
    low, high = request(8, 1, max_tokens=20), request(8, 2, max_tokens=4)
    high.priority = 5
    held.add(low)
    for _ in range(4):
        held.step()
    held.add(high)
    held.step()
    assert high.state == "running" and low.state == "preempted"
    held.run()
    why = next(e.why for e in events if isinstance(e, Branch) and e.state == "preempted")
    assert why == "request r1 outranks it"


def test_priority_without_displacement_waits():
    calm = {"kind": "priority", "displace": False}
    held, _ = engine(ordering=calm, max_running=1)
    low, high = request(8, 1, max_tokens=6), request(8, 2)
    high.priority = 5
    held.add(low)
    held.step()
    held.add(high)
    held.step()
    assert high.state == "queued" and low.state == "running"


def test_fair_share_serves_a_quiet_user_before_a_busy_ones_tenth_request():
    held, events = engine(ordering="fair_share", max_running=1)
    busy = [request(10, n) for n in range(6)]
    for one in busy:
        one.user = "busy"
    quiet = request(10, 9)
    quiet.user = "quiet"
    for one in [*busy, quiet]:
        held.add(one)
    held.run()
    assert started(events).index("r6") <= 1


def test_decode_first_never_lets_a_prompt_hold_decodes_up():
    held, events = engine(step_tokens=8, pages=200)
    serve(held, [request(6, 1, max_tokens=30), request(90, 2)])
    assert all(decodes == 1 for decodes, _ in steps(events)[1:12])


def test_prefill_first_never_mixes():
    held, events = engine(batching="prefill_first", pages=200)
    serve(held, [request(20, n, max_tokens=10) for n in range(6)])
    assert all(not (decodes and prefill) for decodes, prefill in steps(events))


def test_a_static_batch_runs_padded_until_its_last_request_ends():
    held, events = engine(batching={"kind": "static_batch", "size": 3}, pages=200)
    lengths = [4, 9, 2, 5, 5]
    serve(held, [request(10 + n, n, max_tokens=length) for n, length in enumerate(lengths)])
    tags = [e.tag for e in events if isinstance(e, Span) and e.name == "step"]
    assert tags[0] == "decode=0 prefill=33 padding=3"
    assert tags[1:9] == [
        "decode=3 prefill=0",
        "decode=2 prefill=0 padding=1",
        "decode=2 prefill=0 padding=1",
        *["decode=1 prefill=0 padding=2"] * 5,
    ]
    assert tags[9] == "decode=0 prefill=27 padding=1"


def test_one_instance_serves_one_request_a_step():
    held, events = engine(batching="one_instance", pages=200)
    serve(held, [request(10, n, max_tokens=5) for n in range(4)])
    names = [e.lane for e in events if isinstance(e, Span) and e.name == "prefill"]
    assert len(names) == 4
    assert all(decodes <= 1 and not (decodes and prefill) for decodes, prefill in steps(events))


def test_temporal_fusion_keeps_rows_dense_and_says_what_moved():
    held, events = engine(batching="temporal_fusion", pages=200)
    serve(held, [request(10, n, max_tokens=3 + n) for n in range(4)])
    moves = [e for e in events if isinstance(e, Move)]
    assert moves and all(e.bytes > 0 for e in moves)
    assert [e.tag for e in events if isinstance(e, Span) and e.lane == "r3"] == ["0:10"]


def test_reserve_never_preempts_where_greedy_does():
    def outcome(admission: str) -> int:
        held, events = engine(pages=24, admission=admission)
        serve(held, [request(12, n, max_tokens=30) for n in range(8)])
        return sum(isinstance(e, Branch) and e.state == "preempted" for e in events)

    assert outcome("reserve") == 0 < outcome("greedy")


def test_swap_falls_back_to_recompute_when_the_host_is_full():
    held, events = engine(pages=24, preemption="swap", host_pages=9)
    serve(held, [request(12, n, max_tokens=30) for n in range(8)])
    seen = {e.state for e in events if isinstance(e, Branch)}
    assert {"swapped", "preempted"} <= seen


def job_of_groups(groups: int, members: int) -> list[Request]:
    """Requests of `groups` shared prefixes, interleaved as they would arrive."""
    draw = np.random.default_rng(2)
    prefixes = draw.integers(0, 50, (groups, 24))
    made = []
    for _ in range(members):
        for prefix in prefixes:
            prompt = np.concatenate([prefix, draw.integers(0, 50, 5)]).astype(np.int32)
            made.append(Request(prompt, sampling(max_tokens=6)))
    return made


def computed(events: list) -> int:
    return sum(prefill for _, prefill in steps(events))


def test_a_plan_of_the_whole_job_computes_each_prefix_once_where_lru_cannot():
    lru, lru_events = engine(pages=30, max_running=2)
    serve(lru, job_of_groups(6, 5))
    planned, events = engine(pages=30, max_running=2, ordering="global_prefix", eviction="next_use")
    job = job_of_groups(6, 5)
    planned.prepare(job)
    serve(planned, job)
    total = sum(len(one.prompt) for one in job)
    assert computed(events) == total - 6 * 4 * 24
    assert computed(lru_events) > computed(events)
    assert planned.cache.cached == 0, "nothing is kept that the plan needs no more"


def test_configs_of_policies_travel_as_plain_values():
    chosen = InferenceConfig(batching={"kind": "static_batch", "size": 3}, ordering="fair_share")
    assert InferenceConfig(**to_dict(chosen)) == chosen
    assert update(chosen, {"batching.size": 5}).batching.size == 5
    with pytest.raises(ValueError, match="no such kind"):
        InferenceConfig(batching="magic")
