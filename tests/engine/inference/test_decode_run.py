"""Decode runs: what steps taken at once leave is what single steps leave, bit for bit."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.log import Log
from engine.core.run import Live
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.life import table
from engine.fleet.run import build, requests_of, serve
from engine.inference.decode_run import DecodeRuns

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
    monkeypatch.setattr(DecodeRuns, "plan", lambda *given: None)
    assert serving(changes) == at_once
