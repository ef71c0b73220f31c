"""Independent sums asked for together, and the sum of their values: work that can be divided.

In comes a drawing of digits, out come the problem and the traces a model learns: the parts one
after the other, or forked into a thread for each and joined before the total.
"""

import re
import string
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal, NamedTuple

from engine.core.config import knob
from engine.tasks.task import Problem, Task, Verdict

SERIAL, FORK = "<Serial>", "<Parallel>"  # the prompt's last word: how to work
JOIN, OUTLINES, OUTLINED = "</Parallel>", "<Outlines>", "</Outlines>"
THREAD, CLOSED = "<Thread>", "</Thread>"
TOTAL = re.compile(r"=(\d);\s*$", re.ASCII)


class Part(NamedTuple):
    """One of the sums: its name, the letters of its entries and their digits."""

    name: str
    letters: str
    digits: tuple[int, ...]

    @property
    def value(self) -> int:
        return sum(self.digits) % 10


@dataclass(frozen=True, slots=True)
class PartsProblem(Problem):
    """Such as `Aa3b7;Bc1d2;`: the sums of A and of B, then of both, all modulo 10."""

    parts: tuple[Part, ...]

    def check(self, text: str) -> Verdict:
        found = TOTAL.search(text)
        if found is None:
            return Verdict(False, "does not end in a total")
        if found[1] != self.answer[1]:
            return Verdict(False, f"says {found[1]} where it is {self.answer[1]}", found[1])
        return Verdict(True, "is the total", found[1])

    @property
    def outlines(self) -> str:
        """What there is to do: each part's number and the letters it goes from and to."""
        said = (f"{n}:{p.letters[0]}{p.letters[-1]}" for n, p in enumerate(self.parts, 1))
        return OUTLINES + "".join(said) + OUTLINED

    @property
    def threads(self) -> tuple[str, ...]:
        """The work on each part, without the words it is seeded with or closed by."""
        return tuple(_sums(p.letters, p.digits) + f"{p.name}{p.value}" for p in self.parts)

    @property
    def total(self) -> str:
        """The sum of all parts, step by step."""
        return _sums([part.name for part in self.parts], [part.value for part in self.parts])


class PartSums(Task):
    """Sums of 2 to `entries` digits each; how many varies from part to part."""

    kind: Literal["part_sums"] = "part_sums"
    words: ClassVar[tuple[str, ...]] = (SERIAL, FORK, JOIN, OUTLINES, OUTLINED, THREAD, CLOSED)
    parts: int = knob(4, "Sums that do not depend on each other", low=1, high=5)
    entries: int = knob(4, "Digits of a sum at most", low=2, high=5)

    def draw(self, chance: Random) -> PartsProblem:
        parts, free = [], string.ascii_lowercase
        for name in string.ascii_uppercase[: self.parts]:
            size = chance.randrange(2, self.entries + 1)
            digits = tuple(chance.randrange(10) for _ in range(size))
            parts.append(Part(name, free[:size], digits))
            free = free[size:]
        prompt = "".join(
            part.name + "".join(f"{a}{b}" for a, b in zip(part.letters, part.digits, strict=True))
            + ";"
            for part in parts
        )  # fmt: skip
        answer = f"={sum(part.value for part in parts) % 10};"
        return PartsProblem(prompt, prompt, answer, tuple(parts))


def serial(problem: Problem) -> list[tuple[str, str]]:
    """(what is read, what is said after it): the whole work in one piece."""
    assert isinstance(problem, PartsProblem)
    said = "".join(thread + ";" for thread in problem.threads) + problem.total
    return [(problem.prompt + SERIAL, said)]


def forked(problem: Problem) -> list[tuple[str, str]]:
    """(what is read, what is said after it) of each request that a fork and its join take."""
    assert isinstance(problem, PartsProblem)
    begun = problem.prompt + FORK
    asked = [(begun, problem.outlines)]
    outlined = begun + problem.outlines
    seeds = [f"{THREAD}{number}:" for number in range(1, len(problem.parts) + 1)]
    said = [thread + CLOSED for thread in problem.threads]
    asked += [(outlined + seed, own) for seed, own in zip(seeds, said, strict=True)]
    joined = outlined + "".join(seed + own for seed, own in zip(seeds, said, strict=True))
    return [*asked, (joined + JOIN, problem.total)]


def _sums(letters: str | list[str], digits: tuple[int, ...] | list[int]) -> str:
    """Each entry added to the sum before it."""
    said, before = "", 0
    for letter, digit in zip(letters, digits, strict=True):
        after = (before + digit) % 10
        said += f"{letter}{before}+{digit}={after};"
        before = after
    return said
