"""Autoscaled fleets: nothing is lost while replicas come and go; only their own time is paid."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.core.log import Log
from engine.core.run import Run
from engine.fleet.fleet import Fleet
from engine.fleet.measure import served
from engine.fleet.run import PAID, build, requests_of, run
from engine.fleet.scaling.by_load import ByQueue, ByUtilisation
from engine.fleet.scaling.scaling import Fixed, Seen
from tests.engine.fleet.test_fleet import SMALL
from widgets.views.fleet.fold import Fleet as View

QUEUE = {
    "replicas": 4, "scaling": "by_queue", "scaling.target": 4.0, "scaling.every": 0.05,
    "scaling.startup": 0.1, "scaling.cooldown": 0.2, "price": 3.0, "tokens": False,
}  # fmt: skip
WAVES = {**QUEUE, "engine.workload.count": 160, "engine.workload.rate": 80.0,
         "engine.workload.swing": 0.95, "engine.workload.period": 1.0}  # fmt: skip


FIXED = {name: value for name, value in WAVES.items() if not name.startswith("scaling")}


def config(changes: dict):
    return update(SMALL, changes)


def test_arrived_is_finished_refused_and_under_way_at_every_moment():
    made = config({**WAVES, "faults.kill": 0, "faults.kill_at": 0.5, "faults.back_after": 0.4})
    built, log = build(made), Log()
    fleet = Fleet(made, built, log.emit)
    requests, on = requests_of(made, built), set()
    for number, request in enumerate(requests):
        fleet.timeline.at(request.arrival, fleet.arrive, request, number)
    while fleet.advance():
        now = fleet.counts
        assert now.arrived == now.finished + now.refused + now.under_way
        states = fleet.scaler.states
        assert all(
            not replica.given for replica in fleet.replicas if states[replica.number] == "off"
        )
        on.add(len(fleet.alive))
    assert (fleet.counts.finished, fleet.counts.refused) == (160, 0)
    assert min(on) <= 1 and max(on) >= 3  # it grew and shrank


def test_waves_cost_less_than_the_most_replicas_all_the_time():
    log = Run.execute(run, config(WAVES)).log
    found = served(log, config(WAVES))
    fixed = served(Run.execute(run, config(FIXED)).log, config(FIXED))
    assert found.finished == 160 and 1 <= found.replicas < 4
    hourly = 3.0 * found.replicas * found.seconds / 3600
    assert found.cost == pytest.approx(hourly / found.tokens * 1e6)
    assert found.watts < fixed.watts and found.cost < fixed.cost and fixed.replicas == 4
    paid = log.blobs[PAID]
    assert (paid > 0).sum() >= 3 and paid.sum() == pytest.approx(
        found.replicas * found.seconds, rel=0.05
    )
    names = [mark.name for mark in log.of(Mark)]
    assert {"starts", "back", "stopped"} <= set(names)
    told = [level.value for level in log.of(Level) if level.lane == "fleet"]
    assert told[0] == 1.0 and max(told) >= 3
    view = View()
    for event in log.events:
        view.take(event)
    assert 0 < sum(each.dead for each in view.replicas.values()) <= 4 - told[-1]  # some may drain


def test_the_same_seed_is_the_same_run():
    one, two = (Run.execute(run, config(WAVES)).log for _ in range(2))
    assert [e for e in one.events if type(e) is Mark] == [e for e in two.events if type(e) is Mark]
    assert np.array_equal(one.blobs[PAID], two.blobs[PAID])


def test_a_start_takes_its_time_and_a_need_just_past_keeps_replicas():
    slow = Run.execute(run, config({**WAVES, "scaling.startup": 50.0})).log
    assert served(slow, config(WAVES)).finished == 160
    assert not [mark for mark in slow.of(Mark) if mark.name == "back"]
    kept = Run.execute(run, config({**WAVES, "scaling.cooldown": 1e3})).log
    told = [level.value for level in kept.of(Level) if level.lane == "fleet"]
    assert told == sorted(told)  # it never shrinks
    all_on = Run.execute(run, config({**WAVES, "scaling.first": 4, "scaling.least": 4})).log
    fixed = Run.execute(run, config(FIXED)).log
    assert np.allclose(all_on.blobs["requests"], fixed.blobs["requests"], equal_nan=True)


def test_policies_want_what_their_targets_say():
    seen = Seen(0.0, 4, 1, 33, 0.9)
    assert ByQueue(target=8.0).wanted(seen) == 5
    assert ByUtilisation(target=0.45).wanted(seen) == 8
    assert ByUtilisation(target=0.85).wanted(seen) == 5 == Fixed().wanted(seen)


def test_a_few_requests_keep_an_engine_at_work_and_make_utilisation_grow():
    few = {
        **QUEUE, "engine.workload.count": 6, "engine.workload.rate": 20.0, "scaling.target": 16.0,
        "engine.workload.output": {"median": 200, "spread": 0.2, "longest": 400},
    }  # fmt: skip
    queue = config(few)
    share = config({**few, "scaling": "by_utilisation", "scaling.target": 0.7})
    by_queue, by_share = (served(Run.execute(run, each).log, each) for each in (queue, share))
    assert by_queue.replicas == pytest.approx(1.0) and by_share.replicas > 1.3
    assert by_queue.finished == by_share.finished == 6


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"pools": "prefill_decode"}, "pools=together"),
        ({"power.budget": 2.0}, "power budget"),
        ({"scaling.least": 5}, "there are 4"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, words):
    with pytest.raises(BadInput, match=words):
        build(config({**QUEUE, **changes}))
