"""Real beside modelled latencies at rising load: what is compared, and how near it comes."""

import multiprocessing
import os
from contextlib import nullcontext
from threading import Thread

import numpy as np
import pytest

from engine.core.config import to_dict, update
from engine.core.errors import BadInput
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.measure import served
from engine.fleet.run import run
from workbench.real_and_modelled import engine_process, loads
from workbench.real_and_modelled.compare import calibrating, requests_of
from workbench.real_and_modelled.steps_taken import Taken

SMALL = {"tokens": False, "replicas": 2, "engine.workload.count": 20, "engine.workload.rate": 50.0}
QUIET = 0.5  # processes that wanted a core in the last minute, beside our own


def test_latencies_count_from_arrival_and_leave_answers_of_one_token_out():
    given = (np.array(each) for each in ([0.0, 1.0], [0.5, 2.0], [0.5, 4.0], [1, 5]))
    found = loads.Served.of(*given)
    assert found.means == {"time to first token": 0.75, "time per output token": 0.5}


def test_the_modelled_side_is_the_fleet_as_everybody_sees_it():
    config = update(FleetConfig(), SMALL)
    told = served(Run.execute(run, config).log, config)
    means = loads.simulated(config).means
    assert means["time to first token"] == pytest.approx(told.ttft.mean)
    assert means["time per output token"] == pytest.approx(told.tpot.mean)


def test_all_of_what_is_compared_is_served_by_both():
    bare = loads.modelled(update(loads.usual(200), {"engine.workload.rate": 20.0}), loads._bare())
    assert all(mean > 0 for mean in loads.simulated(bare).means.values())
    longer = update(bare, {"engine.workload.prompt": {"median": 64, "spread": 0.8, "longest": 400}})
    with pytest.raises(BadInput, match="more than a replica takes .512 tokens"):
        loads.simulated(longer)


def test_an_engine_is_calibrated_on_steps_of_requests_that_are_sent_to_it(monkeypatch):
    """The whole path but the process: requests over a pipe, its own steps back, those before
    forgotten."""
    config = update(loads.usual(4), {"engine.model": "running-sum-400k", "engine.max_running": 2})
    here, there = multiprocessing.Pipe()
    monkeypatch.setattr(engine_process.signal, "signal", lambda *given: None)  # no main thread's
    serving = Thread(target=engine_process.serve, args=(to_dict(config.engine), 1, there))
    serving.start()
    one = object.__new__(engine_process.EngineProcess)
    one.pipe = here
    assert one.receive()["what"] == engine_process.READY
    rates = 0.0, 200.0
    found = [loads._taken(config, [one], rate) for rate in rates]
    here.close()
    serving.join()
    for rate, taken in zip(rates, found, strict=True):
        other = calibrating(config.engine, rate)
        sent = requests_of(other)
        tokens = sum(len(each.prompt) + each.sampling.max_tokens - 1 for each in sent)
        computed = sum(int(step.new_B.sum()) for step in taken)
        # The last step is left out, since nothing says how long it took.
        assert tokens - other.max_running <= computed < tokens
        assert all(0 < step.seconds < 60 for step in taken)


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_real_engines_behind_a_router_are_what_the_model_says(replicas):
    """Bounds hold on a machine that repeats itself: on a busy one nothing can be told."""
    rows = loads.compare(update(loads.usual(200), {"replicas": replicas}), print)
    assert len(rows) == 2 * len(loads.LOADS) and all(row["real"] > 0 for row in rows)
    if os.getloadavg()[0] > replicas + QUIET:
        pytest.skip(f"other work runs on this machine ({os.getloadavg()[0]:.1f} want a core)")
    assert all(abs(row["error"]) <= row["within"] for row in rows), loads.table_of(rows)


def test_an_interrupt_keeps_the_loads_that_were_over(monkeypatch):
    """Of three loads the second is interrupted: rows of the first."""
    served = loads.Served(np.array([0.01]), np.array([0.002]))
    calls = []

    def asked(config, engines):
        calls.append(config.engine.workload.rate)
        if len(calls) == loads.TIMES + 1:
            raise KeyboardInterrupt
        return served

    steps = [
        Taken(np.full(n, 1 + new), np.full(n, 40 + new), n, 1e-3 * (1 + n + new / 10))
        for n in (1, 2, 4, 8, 16) for new in (0, 10, 20)
    ]  # fmt: skip
    monkeypatch.setattr(loads, "asked", asked)
    monkeypatch.setattr(loads, "_taken", lambda config, engines, rate: steps)
    monkeypatch.setattr(loads.engine_process, "engines", lambda *given: nullcontext([]))
    with pytest.raises(loads.CutShort) as cut:
        loads.compare(loads.usual(4), print, fresh=False)
    assert [row["load"] for row in cut.value.rows] == [loads.LOADS[0]] * 2
    assert all(row["real"] > 0 and row["modelled"] > 0 for row in cut.value.rows)
