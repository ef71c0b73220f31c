"""Agents on a fleet: a step waits for the last one and its tool; nothing that was said is lost."""

from collections import Counter

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.fleet.agents import TASK_COLUMNS, TASKS, AgentFleet, AgentsConfig, FairFinish, run
from engine.fleet.config import FleetConfig
from engine.fleet.measure import columns
from engine.fleet.routers.router import Asked, Load
from engine.fleet.routers.work_stealing import WorkStealing
from engine.fleet.run import build, serve
from engine.inference.requests.request import Sampling
from engine.inference.workloads.agents import Agents
from engine.inference.workloads.workload import Source

SMALL = update(
    AgentsConfig(),
    {
        "replicas": 2,
        "router": "work_stealing",
        "engine.pages": 250,
        "engine.max_running": 8,
        "engine.step_tokens": 512,
        "engine.eviction": "next_use",
        "engine.workload": {
            "kind": "agents", "count": 8, "rate": 20.0, "pause": 0.05,
            "steps": {"median": 4, "spread": 0.4, "longest": 6},
            "first": {"median": 300, "spread": 0.4, "longest": 800},
            "observed": {"median": 150, "spread": 0.5, "longest": 300},
            "output": {"median": 12, "spread": 0.5, "longest": 30},
        },
    },
)  # fmt: skip
LRU = {"engine.eviction": "lru", "router": "prefix_aware"}


def source() -> Source:
    return Source(vocab=1000, context=4096, sampling=Sampling())


@pytest.mark.parametrize("changes", [{}, LRU, {"foresight": "reversed"}, {"tokens": False}])
def test_a_step_comes_when_the_last_has_ended_and_its_tool_has_answered(changes):
    config = update(SMALL, changes)
    built, log = build(config), Log()
    facts = built.executor(0).facts
    given = Source(facts.vocab, facts.context, config.engine.sampling)
    fleet = AgentFleet(config, built, log.emit, given)
    arrive, came, prompts = fleet.arrive, {}, {}

    def seen(request, number):
        task, index = fleet.playing[request.id]
        came[task.number, index] = fleet.timeline.now
        prompts[task.number, index] = request.prompt
        arrive(request, number)

    fleet.arrive = seen  # type: ignore[method-assign]
    assert isinstance(config.engine.workload, Agents)
    tasks = config.engine.workload.tasks(given, config.engine.seed)
    for task in tasks:
        fleet.timeline.at(task.arrival, fleet.begin, task)
    serve(fleet, (), Live(log))
    assert fleet.finished == len(came) == sum(len(task.steps) for task in tasks)
    assert not fleet.playing
    for task in tasks:
        for index, step in enumerate(task.steps):
            prompt = prompts[task.number, index]
            assert np.array_equal(prompt[-len(step.new) :], step.new)
            if index:
                last = prompts[task.number, index - 1]
                assert np.array_equal(prompt[: len(last)], last)
                assert len(prompt) == len(last) + task.steps[index - 1].answer + len(step.new)
                gone = came[task.number, index] - came[task.number, index - 1]
                assert gone > task.steps[index - 1].pause
    assert all(replica.engine.cache.held == 0 for replica in fleet.replicas)


def test_the_table_of_tasks_is_that_of_requests():
    log = Run.execute(run, SMALL).log
    tasks, requests = dict(zip(TASK_COLUMNS, log.blobs[TASKS], strict=True)), columns(log)
    assert tasks["steps"].sum() == len(requests["ended"])
    assert set(tasks["ended"]) <= set(requests["ended"])
    assert (tasks["ended"] - tasks["arrival"] > tasks["paused"]).all()


def test_a_flood_of_one_tenant_waits_for_itself():
    fair = FairFinish()
    flood = [fair.of("many", 10) for _ in range(5)]
    assert flood == [10, 20, 30, 40, 50]
    assert fair.of("few", 10) == 10
    fair.begins(30)
    assert fair.of("few", 10) == 40  # no credit for the time that it asked for nothing


def test_a_waiting_request_is_stolen_only_where_it_ends_sooner():
    router, prompt = WorkStealing(behind_by=100), np.zeros(500, np.int32)
    home, idle = Load(0, lambda p: 400, 5, 2000), Load(1, lambda p: 0)
    asked = Asked(0, prompt, 0)
    assert router.route(asked, [home, idle]) is home
    assert router.behind(home) and not router.behind(idle)
    assert router.moves(asked, home, [home, idle]) is idle
    home.tokens = 550
    assert router.moves(asked, home, [home, idle]) is None


def test_tasks_are_of_a_seed_and_end_with_the_context():
    workload = Agents(count=30, flood=0.5)
    one, same = (workload.tasks(source(), 3) for _ in range(2))
    assert [task.work for task in one] == [task.work for task in same]
    assert all(task.work <= 4096 or len(task.steps) == 1 for task in one)
    assert Counter(task.tenant for task in one)["t0"] > 5
    assert len(workload.requests(source(), 3)) == sum(len(task.steps) for task in one)


def test_a_workload_without_tasks_is_refused():
    config = AgentsConfig(engine=FleetConfig().engine)
    with pytest.raises(BadInput, match="engine.workload: poisson has no tasks"):
        config.check()
