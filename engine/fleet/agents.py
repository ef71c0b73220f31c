"""Agents on a fleet: a task's next step waits for the last one's end and its tool; the caches are
told when each task is predicted to come back.

After SAGA's abstract (SAGA: Workflow-Atomic Scheduling for AI Agent Inference on GPU Clusters): the
graph of a task names the tool that it waits for, and so when its cache is used again; tasks, not
requests, share the fleet fairly. The paper itself was not read.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from engine.cache.eviction import FAR
from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.core.run import Live
from engine.fleet.built import Built
from engine.fleet.config import FleetConfig
from engine.fleet.fleet import Fleet
from engine.fleet.journey import Journey
from engine.fleet.life import FINISHED
from engine.fleet.run import build, header, serve, tell
from engine.inference.workloads.agents import Agents, Task
from engine.inference.workloads.workload import Source

TASKS = "tasks"  # blob: TASK_COLUMNS of every task
TASK_COLUMNS = ("arrival", "ended", "paused", "steps", "tenant")
TICK = 1e6  # of a second: what next uses count
LATER = FAR // 2  # answers' pages, which no plan names: before all that is predicted
Foresight = Literal["graph", "reversed", "true"]
Share = Literal["tenants", "tasks", "none"]


class AgentsConfig(FleetConfig):
    """A fleet that serves agents (`engine.workload` of kind agents)."""

    foresight: Foresight = knob(
        "graph",
        "When a cache is used again: after the pause of the tool that the graph names, the same "
        "with soon and late exchanged (a fault), or as it will be (offline). For next_use eviction",
    )
    fair: Share = knob(
        "tenants",
        "Steps' priority, which ordering by priority asks for: their task's fair finish among "
        "tenants, its finish were each task a tenant (a fault), or none",
    )

    def check(self) -> None:
        """Raises BadInput where the fleet makes no sense."""
        super().check()
        if not isinstance(self.engine.workload, Agents):
            raise BadInput(
                f"engine.workload: {self.engine.workload.kind} has no tasks "
                "(--set engine.workload=agents)"
            )
        if self.power.budget or self.faults.kill >= 0:
            raise BadInput(
                "agents: no power budget and no replica that dies here; play requests for these"
            )


class FairFinish:
    """Start-time fair queueing of whole tasks: when each would end were all tenants served alike.

    Time counts in tokens of work. A tenant's next task begins where its last one ends, or now.
    """

    def __init__(self) -> None:
        self.now = 0
        self._ends: dict[str, int] = {}

    def of(self, tenant: str, work: int) -> int:
        """A task of so much `work` arrives: its fair finish."""
        self._ends[tenant] = max(self.now, self._ends.get(tenant, 0)) + work
        return self._ends[tenant]

    def begins(self, start: int) -> None:
        """A task whose fair start is `start` is served."""
        self.now = max(self.now, start)


class AgentFleet(Fleet):
    """A fleet that plays tasks: call `begin` when one comes."""

    def __init__(
        self, config: AgentsConfig, built: Built, emit: Callable[[AnyEvent], None], source: Source
    ) -> None:
        super().__init__(config, built, emit)
        assert isinstance(config.engine.workload, Agents)
        self.agents, self.source, self.workload = config, source, config.engine.workload
        self.predicts = config.engine.eviction.kind == "next_use"
        self.fair = FairFinish()
        self.finish: dict[int, int] = {}  # of tasks under way
        self.playing: dict[str, tuple[Task, int]] = {}  # requests under way -> task and step
        self.home: dict[int, int] = {}  # task -> the replica that served it last
        self.ended: dict[int, float] = {}
        self.asked = 0
        for replica in self.replicas if self.predicts else ():
            replica.engine.cache.expect(-1, LATER)

    def begin(self, task: Task) -> None:
        """`task` comes now."""
        whose = task.tenant if self.agents.fair == "tenants" else str(task.number)
        self.finish[task.number] = self.fair.of(whose, task.work)
        self._ask(task, 0, np.zeros(0, np.int32))

    def _ask(self, task: Task, index: int, said: np.ndarray) -> None:
        """The next step of `task`, after all that was `said`."""
        step = task.steps[index]
        prompt = np.concatenate([said, step.new])
        request = self.source.request(prompt, step.answer, self.timeline.now, user=task.tenant)
        request.id = f"{task.tenant} {task.number}:{index}"  # short, as lanes are labelled
        if self.agents.fair != "none":
            request.priority = -self.finish[task.number]
        if self.predicts:
            request.group, request.shared = task.number, len(prompt)
            request.rank = int(TICK * self.timeline.now)
        self.playing[request.id] = task, index
        self.asked += 1
        self.arrive(request, self.asked - 1)

    def _entered(self, name: str) -> None:
        super()._entered(name)
        task, index = self.playing[name]
        self.fair.begins(self.finish[task.number] - task.work)
        here, last = self.journeys[name].place.decode, self.home.get(task.number)
        self.home[task.number] = here
        if not self.predicts:
            return
        # After the engine has taken it in, and before it can end.
        self.timeline.at(self.timeline.now, self._expect, here, task, index)
        if last is not None and last != here:  # what it left there is stale
            self.timeline.at(self.timeline.now, self._forget, last, task)

    def _expect(self, number: int, task: Task, index: int) -> None:
        """That replica's cache learns when the step after `index` is predicted to come."""
        when = FAR
        if index + 1 < len(task.steps):
            when = int(TICK * (self.timeline.now + self._pause(task, index)))
        if self.agents.foresight == "reversed":
            when = LATER - min(when, LATER)
        self.replicas[number].engine.cache.expect(task.number, when)

    def _pause(self, task: Task, index: int) -> float:
        """Predicted seconds from the end of a step to the next one."""
        if self.agents.foresight == "true":
            return task.steps[index].pause
        return float(self.workload.median(task.steps[index].tool))

    def _forget(self, number: int, task: Task) -> None:
        if self.home[task.number] != number:
            self.replicas[number].settle()
            self.replicas[number].engine.cache.expect(task.number, FAR)

    def _over(self, journey: Journey, state: float) -> None:
        """A step has ended: its tool is called, and the cache is told when it will be back."""
        super()._over(journey, state)
        task, index = self.playing.pop(journey.asked.id)
        if self.predicts and journey.place.decode >= 0:
            self._expect(journey.place.decode, task, index)
        if state == FINISHED and index + 1 < len(task.steps):
            back = self.timeline.now + task.steps[index].pause
            self.timeline.at(back, self._ask, task, index + 1, journey.known)
        else:
            self.ended[task.number] = self.timeline.now if state == FINISHED else float("nan")


def run(config: AgentsConfig, live: Live) -> None:
    """Play the tasks of the engine's workload on the fleet. Raises BadInput."""
    live.report(f"building {config.replicas} replicas", 0, 0)
    built = build(config)
    facts = built.executor(0).facts
    source = Source(facts.vocab, facts.context, config.engine.sampling)
    assert isinstance(config.engine.workload, Agents)
    tasks = config.engine.workload.tasks(source, config.engine.seed)
    fleet = AgentFleet(config, built, live.emit, source)
    steps = sum(len(task.steps) for task in tasks)
    live.open(config, fleet.timeline.clock, **header(config, built, steps))
    for task in tasks:
        fleet.timeline.at(task.arrival, fleet.begin, task)
    serve(fleet, (), live, steps)
    tell(fleet, live)
    rows = [
        (
            task.arrival, fleet.ended[task.number], sum(step.pause for step in task.steps[:-1]),
            float(len(task.steps)), float(task.tenant[1:]),
        )
        for task in tasks
    ]  # fmt: skip
    live.keep(fleet.timeline.now, TASKS, np.array(rows, np.float64).T)
