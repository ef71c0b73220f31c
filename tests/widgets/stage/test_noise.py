"""Noise of differences: intervals cover, the same requests pair, little is not judged."""

import numpy as np
import pytest

from engine.core.events import Branch, Closed, Opened, Token
from engine.core.log import Log
from widgets.stage.noise import BEYOND, FEW, WITHIN, noises, quantiles
from widgets.stage.strip import account

FIRST = "time to first token, p50"


def run(waits: np.ndarray, seed: int = 0, workload: dict | None = None, clock="virtual") -> Log:
    """Requests a tenth of a second apart, each of three tokens, the first `waits` after it came."""
    told = [Opened(0.0, {"workload": workload or {"count": len(waits)}}, "x", seed, clock)]
    events = []
    for i, wait in enumerate(waits):
        came = 0.1 * i
        events.append(Branch(came, f"r{i}", state="queued"))
        events += [Token(came + wait + 0.01 * k, f"r{i}", k) for k in range(3)]
        events.append(Branch(came + wait + 0.03, f"r{i}", state="finished"))
    events.sort(key=lambda event: event.time)
    return Log([*told, *events, Closed(events[-1].time, "finished")])


def waits(seed: int, count: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(-1, 1, count)


def test_a_small_gain_of_every_request_shows_in_pairs_alone():
    before = waits(1)
    paired = noises(run(before), run(before * 0.9))[FIRST]
    apart = noises(run(before), run(before * 0.9, seed=1))[FIRST]  # another seed: others came
    assert paired.word == BEYOND and paired.mark == "▼"
    assert paired.low == pytest.approx(0.9) and paired.high == pytest.approx(0.9)
    assert apart.word == WITHIN and apart.low < 0.9 < apart.high


def test_runs_of_one_distribution_are_told_apart_in_about_one_of_twenty():
    found = [
        noises(run(waits(2 * i)), run(waits(2 * i + 1), seed=1))[FIRST].word for i in range(60)
    ]
    assert found.count(BEYOND) <= 9  # a twentieth would be 3; more than 9 in one of a thousand


def test_requests_pair_in_any_order_and_not_under_other_work():
    before = waits(3)
    log = run(before)
    head, last, asked = log.events[0], log.events[-1], log.events[1:-1]
    later = [event for event in asked if getattr(event, "state", "") != "queued"]
    early = [Branch(0.0, f"r{i}", state="queued") for i in range(len(before))]
    there, back = (Log([head, *first, *later, last]) for first in (early, early[::-1]))
    assert noises(there, back)[FIRST].over == "the same requests"
    assert noises(there, back)[FIRST].low == noises(there, back)[FIRST].high == 1
    other = run(before, workload={"count": 61})
    assert noises(log, other)[FIRST].over == "requests"


def test_little_is_not_judged():
    few = noises(run(waits(1, 8)), run(waits(1, 8) * 5))
    assert {noise.word for noise in few.values()} == {FEW}
    many = noises(run(waits(1)), run(waits(1) * 5))
    assert many[FIRST].word == BEYOND and many["time to first token, p99"].word == FEW


def test_the_same_logs_give_the_same_interval_and_many_requests_cost_little():
    logs = run(waits(4, 3000)), run(waits(5, 3000))
    assert noises(*logs) == noises(*logs)


def test_quantiles_are_numpys_of_what_was_drawn_and_leave_nan_out():
    chance = np.random.default_rng(0)
    values, counts = chance.random(40), chance.integers(0, 3, (5, 40))
    for holes in (slice(0, 0), slice(None, None, 3)):
        values[holes] = np.nan
        drawn = [np.repeat(values, row) for row in counts]
        wanted = [np.nanquantile(each, (0.5, 0.99)) for each in drawn]
        assert np.allclose(quantiles(values, counts, (0.5, 0.99)), wanted)


def test_a_modelled_pair_says_what_its_interval_is_of():
    logs = [run(waits(1)), run(waits(2))]
    assert "Modelled runs, one seed each" in account(logs, [noises(*logs)])
    walled = [run(waits(1), clock="wall"), run(waits(2), clock="wall")]
    assert "may differ by more" in account(walled, [noises(*walled)])
    assert "Modelled" not in account(walled, [noises(*walled)])
