"""Agents: tasks of chained steps; a step asks again with all that was said and a tool's answer.

A task's next step comes when the one before has ended and its tool has answered, which a fleet of
agents plays (`engine.fleet.agents`). As plain requests the steps come as if answers took no time.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from engine.core.config import knob
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import Lengths, affordable, arrivals, held, tokens
from engine.inference.workloads.workload import Source, Workload

TOOLS = (0.1, 1.0, 10.0)  # median pause of each tool over the knob's: read a file, search, test
CALLED = (0.5, 0.3, 0.2)  # how often each is called


class Step(NamedTuple):
    """One call of the model, and the tool that is called after it."""

    new: np.ndarray  # int32 tokens that the prompt gains
    answer: int  # tokens
    tool: int
    pause: float  # seconds that the tool takes


class Task(NamedTuple):
    """What an agent does: steps, one after another."""

    number: int
    arrival: float
    tenant: str
    steps: tuple[Step, ...]

    @property
    def work(self) -> int:
        """Tokens to compute and to answer, each once."""
        return sum(len(step.new) + step.answer for step in self.steps)


class Agents(Workload):
    """`count` tasks at `rate`, of tenants; the first brings the share `flood` of them."""

    kind: Literal["agents"] = "agents"
    count: int = knob(40, "Tasks", low=1, high=100_000, log=True)
    rate: float = knob(
        2.0,
        "Tasks that arrive; 0: all at once",
        low=0.0,
        high=1e6,
        unit="1/s",
        called="Arrival rate",
    )
    steps: Lengths = knob(Lengths(median=8, spread=0.4, longest=64), "Steps of a task")
    first: Lengths = knob(Lengths(median=2000, spread=0.4, longest=8000), "First prompt")
    observed: Lengths = knob(
        Lengths(median=600, spread=0.8, longest=4000), "What a tool adds to the prompt"
    )
    output: Lengths = knob(Lengths(median=80, spread=0.5, longest=400), "Answer lengths")
    pause: float = knob(1.0, "Median pause of the middle tool", low=0.0, high=1e4, unit="s")
    spread: float = knob(0.5, "Standard deviation of a pause's logarithm", low=0.0, high=4.0)
    tenants: int = knob(4, "Who bring the tasks", low=1, high=10_000)
    flood: float = knob(0.25, "Share of the tasks that the first tenant brings", low=0.0, high=1.0)

    def tasks(self, source: Source, seed: int) -> list[Task]:
        """All tasks by arrival; a prompt that would outgrow the model's context ends its task."""
        random = np.random.default_rng([seed, 7])
        times = arrivals(random, self.count, self.rate)
        first, steps = self.first.draw(random, self.count), self.steps.draw(random, self.count)
        others = max(1, self.tenants - 1)
        found, total = [], 0
        for number in range(self.count):
            count = int(steps[number])
            gains = self.observed.draw(random, count)
            gains[0] = first[number]
            answers = self.output.draw(random, count)
            tools = random.choice(len(TOOLS), count, p=CALLED)
            pauses = self.median(tools) * np.exp(self.spread * random.standard_normal(count))
            tenant = 0 if random.random() < self.flood else 1 + int(random.integers(others))
            ends = np.cumsum(gains)
            fits = max(1, int((ends + np.cumsum(answers) < source.context).sum()))
            total += int(ends[fits - 1])
            affordable(total)
            drawn = tokens(seed, number, np.arange(ends[fits - 1]), source.vocab)
            parts = np.split(drawn, ends[: fits - 1])
            made = zip(parts, answers.tolist(), tools.tolist(), pauses.tolist(), strict=False)
            whose = f"t{tenant}"
            found.append(
                Task(number, float(times[number]), whose, tuple(Step(*each) for each in made))
            )
        return found

    def median(self, tool: int | np.ndarray) -> np.ndarray:
        """Median pause of a tool, seconds."""
        return self.pause * np.asarray(TOOLS)[tool]

    def requests(self, source: Source, seed: int) -> list[Request]:
        return sorted(held(self._steps(source, seed)), key=lambda request: request.arrival)

    def _steps(self, source: Source, seed: int) -> Iterator[Request]:
        for task in self.tasks(source, seed):
            prompt, now = np.zeros(0, np.int32), task.arrival
            for step in task.steps:
                prompt = np.concatenate([prompt, step.new])
                yield source.request(prompt, step.answer, now, user=task.tenant)
                now += step.pause
