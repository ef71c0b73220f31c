"""Decode runs and quiet steps: what steps taken at once leave is what single steps leave, and what
steps decided by few calls leave is what those leave that are decided one thing after another."""

import numpy as np
import pytest

from engine.cache.cache import Cache
from engine.core.config import update
from engine.core.events import Branch, Move
from engine.core.log import Log
from engine.core.run import Live
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.life import table
from engine.fleet.run import build, requests_of, serve
from engine.inference.decode_run import DecodeRuns
from engine.inference.quiet_step import QuietSteps
from engine.inference.requests import rows

SHORT = {
    "engine.workload.prompt": {"median": 300, "spread": 0.6, "longest": 2000},
    "engine.workload.output": {"median": 40, "spread": 0.6, "longest": 200},
    "engine.workload.count": 60,
}
ALIKE = {
    "engine.workload": {
        "kind": "shared_prefix", "groups": 8, "per_group": 6, "rate": 80.0,
        "prefix": {"median": 800}, "output": {"median": 40},
    }
}  # fmt: skip


FEW, MANY = 10, 200


def drawn(seed: int) -> dict:
    """Any fleet that speculates nothing: full caches, prefixes, chunks, priorities, faults."""
    random = np.random.default_rng(seed)

    def one(*choices):
        return choices[int(random.integers(len(choices)))]

    rate = one(5.0, 40.0, 200.0)
    found = {
        "replicas": one(1, 2, 3),
        "router": one("round_robin", "least_loaded", "prefix_aware", "dual_map"),
        "engine.seed": seed,
        "engine.pages": one(300, 400, 700, 2000),
        "engine.page_size": one(8, 16, 32),
        "engine.max_running": one(4, 8, 24, 64),
        "engine.step_tokens": one(64, 256, 2048),
        "engine.prefix_sharing": one(True, True, False),
        "engine.ordering": one("fcfs", "fcfs", "priority", "shortest_first"),
        "engine.eviction": one("lru", "lru", "fifo", "least_frequent"),
        "engine.admission": one("greedy", "reserve"),
        "engine.preemption": one(
            "recompute", "swap", {"kind": "block_groups", "overlaps": False, "room": 4}
        ),
        "engine.host_pages": one(0, 200),
        "engine.workload": one(
            {"kind": "shared_prefix", "groups": 6, "per_group": 5, "rate": rate,
             "prefix": {"median": one(100, 400)}, "output": {"median": one(5, 40)}},
            {"kind": "poisson", "count": 40, "rate": rate, "urgent": 0.3,
             "prompt": {"median": one(50, 300), "spread": 0.6, "longest": 2000},
             "output": {"median": one(8, 40), "spread": 0.6, "longest": 200}},
        ),
    }  # fmt: skip
    if one(True, False, False):
        back = one(0.0, 0.4)
        found |= {"faults.kill": 0, "faults.kill_at": float(random.random())}
        found |= {"faults.back_after": back, "faults.straggler": found["replicas"] - 1}
    if found["replicas"] > 1 and one(True, False, False):
        found |= {"pools": "prefill_decode", "pools.prefill": 1}
    return found


def serving(changes: dict) -> tuple[bytes, list, list]:
    """Table of requests, what replicas did, and events."""
    config = update(FleetConfig(), {"tokens": False, "replicas": 2, **changes})
    built, log = build(config), Log()
    fleet = Fleet(config, built, log.emit)
    serve(fleet, requests_of(config, built), Live(log))
    did = [(each.busy, each.steps, each.prefilled, each.decoded) for each in fleet.replicas]
    return table(fleet.rows).tobytes(), did, list(log)


@pytest.mark.parametrize(
    "changes",
    [
        {**SHORT, "engine.workload.rate": 5.0},
        {**SHORT, "engine.workload.rate": 200.0, "engine.max_running": 8},
        {**SHORT, "engine.workload.rate": 200.0, "engine.pages": 400},
        {**SHORT, "engine.workload.rate": 40.0, "replicas": 3, "pools": "prefill_decode",
         "pools.prefill": 1, "engine.pages": 700},
        {**SHORT, "engine.workload.rate": 60.0, "faults.kill": 1, "faults.kill_at": 0.5,
         "faults.back_after": 0.5, "faults.straggler": 0},
        {**ALIKE, "router": "prefix_aware", "engine.pages": 600},
        {**ALIKE, "router": "dual_map", "router.objective": 0.01, "engine.max_running": 4},
    ],
    ids=["few", "full", "no pages", "pools", "faults", "caches asked", "migration"],
)  # fmt: skip
def test_a_run_leaves_what_its_steps_leave(changes, monkeypatch):
    plan, ran = DecodeRuns.plan, []

    def counting(*given):
        run = plan(*given)
        ran.append(0 if run is None else len(run.ends))
        return run

    monkeypatch.setattr(DecodeRuns, "plan", counting)
    at_once = serving(changes)
    assert max(ran) > 1 and np.frombuffer(at_once[0]).size
    with monkeypatch.context() as single:
        single.setattr(DecodeRuns, "plan", lambda *given: None)
        assert serving(changes) == at_once
    quietly, schedule = [], QuietSteps.schedule
    monkeypatch.setattr(
        QuietSteps, "schedule", lambda *given: quietly.append(schedule(*given)) or quietly[-1]
    )
    assert serving(changes) == at_once and any(step is not None for step in quietly)
    plainly(monkeypatch)
    assert serving(changes) == at_once


def plainly(monkeypatch):
    """No kernel over columns of several kinds, no step at once: what the scheduler does alone."""
    monkeypatch.setattr(DecodeRuns, "plan", lambda *given: None)
    monkeypatch.setattr(QuietSteps, "schedule", lambda *given: None)
    monkeypatch.setattr(Cache, "plain", False)


def test_any_run_leaves_what_its_steps_leave(full, monkeypatch):
    """And what is told without tokens is of the same steps as what is told of each of them."""
    for seed in range(MANY if full else FEW):
        changes = drawn(seed)
        with monkeypatch.context() as alone:
            at_once = serving(changes)
            alone.setattr(DecodeRuns, "plan", lambda *given: None)
            assert serving(changes) == at_once, changes
            plainly(alone)
            assert serving(changes) == at_once, changes
        table_told, did, events = serving({**changes, "tokens": True})
        assert (table_told, did) == at_once[:2], changes
        told = [event for event in events if isinstance(event, Branch | Move)]
        assert told == [event for event in at_once[2] if isinstance(event, Branch | Move)], changes


def test_rows_that_grow_hold_what_they_held(monkeypatch):
    for seed in range(4):
        changes = drawn(seed)
        with monkeypatch.context() as small:
            small.setattr(rows, "START_ROWS", 2)
            small.setattr(rows, "START_TOKENS", 16)
            growing = serving(changes)
        assert serving(changes) == growing
