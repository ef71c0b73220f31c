"""Fleets: one replica is the single engine; nothing is lost or answered twice, whatever fails."""

import weakref
from collections import Counter

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Mark, Move, Span, Token
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.run import Live, Run
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.measure import served
from engine.fleet.routers.dual_map import DualMap
from engine.fleet.routers.router import Asked, Load
from engine.fleet.run import build, requests_of, run, serve, streamed
from engine.inference import run as single

SMALL = update(
    FleetConfig(),
    {
        "replicas": 3,
        "engine.pages": 400,
        "engine.max_running": 16,
        "engine.step_tokens": 256,
        "engine.workload.count": 40,
        "engine.workload.rate": 60.0,
        "engine.workload.prompt": {"median": 200, "spread": 0.6, "longest": 1500},
        "engine.workload.output": {"median": 16, "spread": 0.5, "longest": 60},
    },
)
APART = {"pools": "prefill_decode", "pools.prefill": 1}
FAULTY = {
    "a replica dies": {"faults.kill": 1, "faults.kill_at": 0.3},
    "it comes back": {"faults.kill": 0, "faults.kill_at": 0.3, "faults.back_after": 0.2},
    "one that decodes dies": {**APART, "faults.kill": 2, "faults.kill_at": 0.35},
    "the one that prefills dies": {**APART, "faults.kill": 0, "faults.kill_at": 0.35},
    "links are cut": {**APART, "faults.cut_at": 0.2, "faults.cut_for": 0.5},
    "one is slow": {**APART, "faults.straggler": 1},
    "all die": {"replicas": 1, "faults.kill": 0, "faults.kill_at": 0.4, "faults.back_after": 1.0},
    "those who wait move": {
        "router": "dual_map",
        "router.objective": 0.01,
        "engine.max_running": 4,
        "engine.workload.rate": 300.0,
    },
    "room is short": {**APART, "engine.pages": 110, "replicas": 2},
}


def play(changes: dict) -> Log:
    return Run.execute(run, update(SMALL, changes)).log


def test_a_fleet_of_one_is_the_single_engine():
    ours = play({"replicas": 1})
    theirs = Run.execute(single.run, SMALL.engine).log
    assert ours.of(Token) == theirs.of(Token)
    assert [b for b in ours.of(Branch) if b.state == "running"] == [
        b for b in theirs.of(Branch) if b.state == "running"
    ]


@pytest.mark.parametrize("changes", FAULTY.values(), ids=FAULTY)
def test_nothing_is_lost_or_answered_twice(changes):
    """Each request has exactly its tokens, whatever dies, and all are accounted for at any time."""
    config = update(SMALL, changes)
    log = Log()
    built = build(config)
    fleet, requests = Fleet(config, built, log.emit), requests_of(config, built)
    advance = fleet.advance

    def watched() -> bool:
        going = advance()
        now = fleet.counts
        assert now.arrived == now.finished + now.refused + now.under_way
        return going

    fleet.advance = watched
    serve(fleet, requests, Live(log))
    wanted = {f"r{n}": each.sampling.max_tokens for n, each in enumerate(requests)}
    assert Counter(token.thread for token in log.of(Token)) == wanted
    ends = Counter(b.thread for b in log.of(Branch) if b.state == "finished")
    assert ends == dict.fromkeys(wanted, 1)
    for replica in fleet.replicas:
        if replica.load.alive:  # every page is free or cached: nobody holds one any more
            assert replica.engine.cache.held == 0
            assert (replica.load.requests, replica.load.tokens) == (0, 0)
    times = [event.time for event in log]
    assert times == sorted(times)


def test_operations_are_told_of_the_watched_replica_alone():
    """Lanes of several would lie on one another; prompts are told of all."""
    few = {"engine.workload.count": 6, "engine.profile_every": 1}

    def lanes(watch: int) -> set[str]:
        return {span.lane for span in play({**few, "watch": watch}).of(Span)}

    requests = {f"r{number}" for number in range(6)} | {f"replica {number}" for number in range(3)}
    assert lanes(-1) == requests
    assert lanes(1) > requests


def test_operations_of_one_step_in_so_many_are_told_in_their_time_of_a_straggler_too():
    few = {"engine.workload.count": 6, "watch": 1, "faults.straggler": 1}
    log = play({**few, "watch_every": 4})
    assert play(few).of(Token) == log.of(Token)  # to look changes nothing
    times = [event.time for event in log]
    assert times == sorted(times)
    steps = [span for span in log.of(Span) if span.lane == "replica 1" and span.name == "step"]
    told = [span for span in log.of(Span) if "of=step" in span.tag]
    assert told and all(
        any(step.start <= span.start and span.time <= step.time for step in steps[::4])
        for span in told
    )


def test_who_waits_behind_too_much_moves_to_its_other_replica():
    moved = play(FAULTY["those who wait move"]).of(Move)
    assert any(move.source != "router" for move in moved)


def test_equal_beginnings_meet_two_replicas_at_most():
    loads = [Load(number, lambda prompt: 0) for number in range(8)]
    router, prompts = DualMap(), np.random.default_rng(0).integers(0, 999, (50, 600))
    pairs = set()
    for number, prompt in enumerate(prompts.astype(np.int32)):
        asked, longer = (Asked(number, each, 0) for each in (prompt, np.append(prompt, 7)))
        pair = router.candidates(asked, loads)
        assert pair[0] is not pair[1]
        assert router.candidates(longer, loads) == pair
        pairs.add(frozenset(load.number for load in pair))
    assert len(pairs) > 15  # of 28: load is shared with many others


def test_what_a_death_costs_is_told():
    log = play(FAULTY["a replica dies"])
    told = {mark.name: mark.text for mark in log.of(Mark)}
    assert "tokens lost" in told["died"]
    assert "run again" in told["recovered"]
    found = served(log, update(SMALL, FAULTY["a replica dies"]))
    assert found.retries > 0 and found.finished == found.requests


def test_nobody_alive_is_told():
    changes = {"replicas": 1, "faults.kill": 0, "faults.kill_at": 0.2}
    found = served(play(changes), update(SMALL, changes))
    assert found.refused > 0 and found.finished + found.refused == found.requests


def test_the_same_seed_gives_the_same_bytes():
    assert play(APART) == play(APART)


def test_figures_are_exact_where_events_are_left_out():
    for changes in ({}, APART):
        whole, thin = play(changes), play({**changes, "tokens": False})
        assert len(thin) < len(whole) / 5
        for name in ("requests", "replicas"):
            assert np.array_equal(whole.blobs[name], thin.blobs[name], equal_nan=True)
        told, found = serving(whole), served(thin, update(SMALL, changes))
        assert found.ttft == told.time_to_first_token
        assert serving(thin) == told
        assert found.end_to_end == told.end_to_end


def test_figures_are_of_all_where_one_request_in_so_many_is_told():
    whole, some = (play({"tokens": False, "record_every": n}) for n in (1, 8))
    assert np.array_equal(whole.blobs["requests"], some.blobs["requests"], equal_nan=True)
    told = {event.thread for event in some.of(Branch)} | {move.tag for move in some.of(Move)}
    assert told == {f"r{n}" for n in range(0, 40, 8)}
    assert [b for b in whole.of(Branch) if b.thread in told] == some.of(Branch)
    with pytest.raises(BadInput, match="tokens=false"):
        play({"record_every": 2})


def test_a_fleet_holds_no_more_than_the_requests_under_way():
    """Of a long workload: neither requests to come nor those that are over."""
    config = update(SMALL, {"tokens": False, "record_every": 100, "engine.workload.count": 600})
    log, built = Log(), build(config)
    fleet = Fleet(config, built, log.emit)
    seen: list[weakref.ref] = []

    def noted():
        for request in streamed(config, built).requests:
            seen.append(weakref.ref(request.prompt))
            yield request
            assert sum(each() is not None for each in seen) <= len(fleet.journeys) + 8

    serve(fleet, noted(), Live(log), 600)
    assert len(seen) == 600 and len(log) < 60


def test_a_cache_sent_layer_by_layer_arrives_sooner():
    slow = {**APART, "bandwidth": 2e9, "engine.workload.prompt": {"median": 800}}
    ends = [
        served(play({**slow, **more}), SMALL).end_to_end.mean
        for more in ({}, {"pools.layer_by_layer": False})
    ]
    assert ends[0] < ends[1]
    moves = [m for m in play(slow).of(Move) if m.source != "router"]
    assert len(moves) == 40
    by_link = sorted((m.start, m.time) for m in moves)
    assert all(b[0] >= a[1] - 1e-9 for a, b in zip(by_link, by_link[1:], strict=False))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"engine.executor": "real"}, "are modelled"),
        ({"pools": "prefill_decode", "pools.prefill": 9}, "all 3 replicas prefill"),
        ({"faults.kill": 7}, "replica 7, there are 3"),
        ({"engine.workload": {"kind": "streamed"}}, "a later state of its input"),
        (
            {"engine.model": "llama-3.1-70b"},
            r"do not fit its 80 GB by 63.2 GB \(63,204,564,992 bytes\)",
        ),
    ],
)
def test_a_fleet_that_makes_no_sense_is_refused_in_one_line(changes, words):
    with pytest.raises(BadInput, match=words):
        play(changes)
