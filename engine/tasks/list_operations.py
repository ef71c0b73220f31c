"""List operations: a few named operations done one after the other to a list of digits."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from engine.core.config import knob
from engine.tasks.task import Problem, Task, Verdict

Digits = tuple[int, ...]
OPERATIONS: dict[str, Callable[[Digits], Digits]] = {
    "sort": lambda digits: tuple(sorted(digits)),
    "reverse": lambda digits: digits[::-1],
    "rotate": lambda digits: digits[1:] + digits[:1],
    "swap": lambda digits: digits[-1:] + digits[1:-1] + digits[:1] if digits[1:] else digits,
    "increment": lambda digits: tuple((digit + 1) % 10 for digit in digits),
    "double": lambda digits: tuple(digit * 2 % 10 for digit in digits),
    "sums": lambda digits: tuple(sum(digits[: place + 1]) % 10 for place in range(len(digits))),
}


@dataclass(frozen=True, slots=True)
class ListProblem(Problem):
    """Such as `sort reverse:3 1 2=`, to be answered by `3 2 1`."""

    result: Digits

    def check(self, text: str) -> Verdict:
        parts = text.strip().split(" ")
        if not all(len(part) == 1 and part.isascii() and part.isdigit() for part in parts):
            return Verdict(False, "is not a list of digits")
        answer = " ".join(parts)
        if tuple(map(int, parts)) != self.result:
            return Verdict(False, f"says {answer} where it is {self.answer}", answer)
        return Verdict(True, "is the list", answer)


class ListOperations(Task):
    """Operations, the first first, and the list they work on; arithmetic on digits is modulo 10."""

    kind: Literal["list_operations"] = "list_operations"
    words: ClassVar[tuple[str, ...]] = tuple(OPERATIONS)
    length: int = knob(8, "Digits in the list", low=1, high=64)
    operations: int = knob(3, "Operations in a row", low=1, high=16)

    def draw(self, chance: Random) -> ListProblem:
        names = list(OPERATIONS)
        chosen = [names[int(chance.random() * len(names))] for _ in range(self.operations)]
        given = tuple(int(chance.random() * 10) for _ in range(self.length))
        result = given
        for name in chosen:
            result = OPERATIONS[name](result)
        prompt = f"{' '.join(chosen)}:{' '.join(map(str, given))}="
        return ListProblem(f"list {prompt}", prompt, " ".join(map(str, result)), result)
