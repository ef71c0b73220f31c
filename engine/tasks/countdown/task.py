"""Countdown: reach a target from given numbers, each used once, by + - * and exact /.

Rules of Stream of Search (Gandhi et al., arXiv 2404.03683, section 3): every number is used, no
value falls below zero, no fraction arises. Comes with a complete solver, for traces of search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Literal

from engine.core.config import knob
from engine.tasks.countdown.check import Unreadable, read
from engine.tasks.task import Problem, Task, Verdict


@dataclass(frozen=True, slots=True)
class Step:
    """Two numbers made one. Written `3+5=8`."""

    left: int
    operation: str
    right: int
    result: int

    def __str__(self) -> str:
        return f"{self.left}{self.operation}{self.right}={self.result}"


@dataclass(frozen=True, slots=True)
class CountdownProblem(Problem):
    """`numbers` in the order of the prompt, such as `3,5,7,2:24` and a line's end."""

    numbers: tuple[int, ...]
    target: int

    def check(self, text: str) -> Verdict:
        """Accepts a list of steps (a line each) or one expression, reaching exactly the target."""
        try:
            value, used, answer = read(text, self.numbers)
        except Unreadable as fault:
            return Verdict(False, str(fault))
        if used != tuple(sorted(self.numbers)):
            return Verdict(False, "does not use every number exactly once", answer)
        if value != self.target:
            return Verdict(False, f"reaches {value} instead of {self.target}", answer)
        return Verdict(True, "reaches the target", answer)


class Countdown(Task):
    """Numbers and a target that some order of operations reaches."""

    kind: Literal["countdown"] = "countdown"
    numbers: int = knob(4, "Numbers given", low=2, high=8)
    largest: int = knob(20, "Largest number given", low=2, high=1000)
    target: int = knob(100, "Largest target", low=2, high=100_000)

    def draw(self, chance: Random) -> CountdownProblem | None:
        numbers = tuple(1 + int(chance.random() * self.largest) for _ in range(self.numbers))
        left, steps = numbers, list[Step]()
        while len(left) > 1:
            possible = legal_steps(left)
            step = possible[int(chance.random() * len(possible))]
            left, steps = after(left, step), [*steps, step]
        if not 1 <= left[0] <= self.target:
            return None
        return problem(numbers, left[0], steps)


def problem(numbers: Sequence[int], target: int, steps: Sequence[Step]) -> CountdownProblem:
    """The problem as text; `steps` are one solution."""
    given = ",".join(map(str, numbers))
    key = f"countdown {','.join(map(str, sorted(numbers)))}:{target}"
    answer = "\n".join(map(str, steps))
    return CountdownProblem(key, f"{given}:{target}\n", answer, tuple(numbers), target)


def legal_steps(numbers: Sequence[int]) -> list[Step]:
    """Every different first step from these numbers, in a fixed order; larger operand on the left.

    Never empty for two numbers and more: a sum always exists.
    """
    found: dict[Step, None] = {}
    for a, b in combinations(numbers, 2):
        high, low = max(a, b), min(a, b)
        found[Step(high, "+", low, high + low)] = None
        found[Step(high, "-", low, high - low)] = None
        found[Step(high, "*", low, high * low)] = None
        if low and high % low == 0:
            found[Step(high, "/", low, high // low)] = None
    return list(found)


def after(numbers: Sequence[int], step: Step) -> tuple[int, ...]:
    """The numbers left once `step` is done: its operands gone, its result last.

    Raises ValueError where an operand is not there.
    """
    left = list(numbers)
    left.remove(step.left)
    left.remove(step.right)
    return (*left, step.result)


def solutions(numbers: Sequence[int], target: int) -> Iterator[tuple[Step, ...]]:
    """Every solution, depth first in the order of `legal_steps`; complete, so none means none.

    Solutions that differ only in the order of independent steps come as often as they have orders.
    """
    if len(numbers) == 1:
        if numbers[0] == target:
            yield ()
        return
    for step in legal_steps(numbers):
        for rest in solutions(after(numbers, step), target):
            yield (step, *rest)


def solve(numbers: Sequence[int], target: int) -> tuple[Step, ...] | None:
    """The first of `solutions`; None where there is none."""
    return next(solutions(numbers, target), None)
