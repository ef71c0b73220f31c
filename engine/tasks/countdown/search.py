"""Searches Countdown's steps within a table of small numbers, the likeliest first.

In come numbers and a target, out come steps in the order of a heuristic with noise: the decisions
of which traces of search are written. Problems are drawn with targets evenly spread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import log
from random import Random
from typing import NamedTuple

from engine.core.errors import BadInput
from engine.tasks.countdown.task import CountdownProblem, Step, problem
from engine.tasks.task import ATTEMPTS, Split, side

LARGEST = 49  # no step of a search goes beyond it, nor below 1
GIVEN = 20  # largest number given
LEAST = 10  # smallest target


class Move(NamedTuple):
    """One step and the numbers it leaves: the untouched ones in their order, then its result."""

    left: int
    operation: str
    right: int
    result: int
    rest: tuple[int, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """What there is after the step."""
        return (*self.rest, self.result)

    @property
    def step(self) -> Step:
        """The step as an answer states it."""
        return Step(self.left, self.operation, self.right, self.result)


@dataclass(frozen=True, slots=True)
class Search:
    """`noise`: spread of the heuristic's error. `children`: of a parallel search, at most."""

    noise: float = 6.0
    children: int = 8


def results(a: int, b: int) -> tuple[int | None, ...]:
    """The results of + - * / on a pair, larger first, each None where it is not allowed."""
    high, low = max(a, b), min(a, b)
    found = (high + low, high - low, high * low, high // low if high % low == 0 else 0)
    return tuple(value if 1 <= value <= LARGEST else None for value in found)


def moves(numbers: Sequence[int]) -> list[Move]:
    """Every step that leaves other numbers than the ones before it, in a fixed order."""
    found: dict[tuple[int, ...], Move] = {}
    for i, j in combinations(range(len(numbers)), 2):
        high, low = max(numbers[i], numbers[j]), min(numbers[i], numbers[j])
        rest = tuple(number for k, number in enumerate(numbers) if k not in (i, j))
        for operation, value in zip("+-*/", results(high, low), strict=True):
            if value is not None:
                left = tuple(sorted((*rest, value)))
                found.setdefault(left, Move(high, operation, low, value, rest))
    return list(found.values())


def distance(numbers: Sequence[int], target: int) -> int:
    """How far the numbers are from the target's factors, summed: less is likelier.

    The multiplication heuristic of Stream of Search (arXiv 2404.03683, section 4).
    """
    factors = _factors(target)
    return sum(min(abs(number - factor) for factor in factors) for number in numbers)


def ordered(numbers: Sequence[int], target: int, chance: Random, noise: float) -> list[Move]:
    """All moves, drawn without replacement by exp(-distance / noise); nearest first without."""

    def key(move: Move) -> float:
        gumbel = -log(-log(chance.random() or 0.5)) if noise else 0.0
        return distance(move.numbers, target) - noise * gumbel

    return sorted(moves(numbers), key=key)


def reaches(numbers: Sequence[int], target: int) -> tuple[Step, ...] | None:
    """A solution whose every value is within the table; None where there is none."""
    if len(numbers) == 2:
        for operation, value in zip("+-*/", results(*numbers), strict=True):
            if value == target:
                return (Step(max(numbers), operation, min(numbers), value),)
        return None
    for move in moves(numbers):
        rest = reaches(move.numbers, target)
        if rest is not None:
            return (move.step, *rest)
    return None


@lru_cache(maxsize=8192)  # methods that are compared are given the same problems
def even_problem(split: Split, seed: int) -> CountdownProblem:
    """The problem of this seed on that side: four numbers, a target drawn evenly, solvable.

    A target that follows from random steps is reached in many ways; one drawn evenly in few.
    """
    chance = Random(f"even countdown {split} {seed}")
    for _ in range(ATTEMPTS):
        numbers = tuple(1 + int(chance.random() * GIVEN) for _ in range(4))
        target = LEAST + int(chance.random() * (LARGEST + 1 - LEAST))
        if side(problem(numbers, target, ())) == split:
            steps = reaches(numbers, target)
            if steps is not None:
                return problem(numbers, target, steps)
    raise BadInput(f"countdown: no {split} problem under seed {seed}; take another seed")


@cache
def _factors(target: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, target + 1) if target % n == 0)
