"""Multi-digit arithmetic: one sum, difference or product, answered by its digits alone."""

from dataclasses import dataclass
from random import Random
from typing import Literal

from engine.core.config import knob
from engine.tasks.task import Problem, Task, Verdict

LONGEST = 40  # digits worth reading


@dataclass(frozen=True, slots=True)
class ArithmeticProblem(Problem):
    """Such as `123*45=`."""

    value: int

    def check(self, text: str) -> Verdict:
        said = text.strip()
        if not said.isascii() or not said.isdigit() or len(said) > LONGEST:
            return Verdict(False, "is not a whole number")
        if int(said) != self.value:
            return Verdict(False, f"says {int(said)} where it is {self.value}", str(int(said)))
        return Verdict(True, "is the value", str(self.value))


class Arithmetic(Task):
    """Two numbers of given lengths, without leading zeros; a difference is never negative."""

    kind: Literal["arithmetic"] = "arithmetic"
    operation: Literal["+", "-", "*"] = knob("*", "Operation")
    left: int = knob(
        3, "Digits of the left number", low=1, high=12, unit="digits", called="Left number"
    )
    right: int = knob(2, "Digits of the right number", low=1, high=12, unit="digits")

    def draw(self, chance: Random) -> ArithmeticProblem:
        a, b = _number(chance, self.left), _number(chance, self.right)
        if self.operation == "-" and a < b:
            a, b = b, a
        value = {"+": a + b, "-": a - b, "*": a * b}[self.operation]
        # Of a*b and b*a only one side may know the answer.
        first, second = (a, b) if self.operation == "-" else sorted((a, b))
        key = f"arithmetic {first}{self.operation}{second}"
        return ArithmeticProblem(key, f"{a}{self.operation}{b}=", str(value), value)


def _number(chance: Random, digits: int) -> int:
    low = 10 ** (digits - 1) if digits > 1 else 0
    return low + int(chance.random() * (10**digits - low))
