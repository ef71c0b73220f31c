"""Programs over lists of digits, asked for by examples: what goes in, what has to come out.

A program is lines of Python that assign to `x`, which begins as what goes in. Any program that
passes counts, on the examples shown and on others that are not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from engine.core.config import knob
from engine.tasks.sandbox.interpreter import Outcome
from engine.tasks.sandbox.sandbox import sandbox
from engine.tasks.task import Problem, Split, Task, Verdict

Digits = list[int]
HIDDEN = 5  # examples that are not shown
# What a line is written as, the numbers it may hold, and what it makes of the list.
LINES: dict[str, tuple[Sequence[int], Callable[[Digits, int], Digits]]] = {
    "x = x[::-1]": ((0,), lambda x, k: x[::-1]),
    "x = sorted(x)": ((0,), lambda x, k: sorted(x)),
    "x = x[{k}:] + x[:{k}]": ((1, 2, 3), lambda x, k: x[k:] + x[:k]),
    "x = [(v + {k}) % 10 for v in x]": ((1, 2, 3, 5), lambda x, k: [(v + k) % 10 for v in x]),
    "x = [v * {k} % 10 for v in x]": ((2, 3), lambda x, k: [v * k % 10 for v in x]),
    "x = [9 - v for v in x]": ((0,), lambda x, k: [9 - v for v in x]),
    "x = [v - min(x) for v in x]": ((0,), lambda x, k: [v - min(x) for v in x]),
    "x = [v % 4 for v in x]": ((0,), lambda x, k: [v % 4 for v in x]),
    "x = [x[v] for v in x]": ((0,), lambda x, k: [x[v] for v in x]),
    "x = [sum(x[:i + 1]) % 10 for i in range(len(x))]": (
        (0,),
        lambda x, k: [sum(x[: i + 1]) % 10 for i in range(len(x))],
    ),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line by its form and its number."""

    form: str
    number: int

    def __str__(self) -> str:
        return self.form.replace("{k}", str(self.number))

    def of(self, x: Digits) -> Digits:
        """The list after the line. Raises IndexError, as the line does."""
        return LINES[self.form][1](x, self.number)

    @classmethod
    def draw(cls, chance: Random) -> "Line":
        """Any form, with any of its numbers."""
        form = chance.choice(list(LINES))
        return cls(form, chance.choice(LINES[form][0]))


@dataclass(frozen=True, slots=True)
class ListProgram(Problem):
    """`lines`: one program that is right. Examples are (what goes in, what has to come out)."""

    lines: tuple[Line, ...]
    shown: tuple[tuple[Digits, Digits], ...]
    hidden: tuple[tuple[Digits, Digits], ...]

    def outcomes(self, text: str) -> list[Outcome]:
        """What a program does on the examples that are shown, run in the sandbox."""
        return sandbox().run(text, [start for start, _ in self.shown])

    def passes(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether these are what has to come out of the examples shown."""
        return passed(outcomes, self.shown)

    def fits(self, text: str) -> bool:
        return self.passes(self.outcomes(text))

    def check(self, text: str) -> Verdict:
        examples = (*self.shown, *self.hidden)
        outcomes = sandbox().run(text, [start for start, _ in examples])
        errors = [outcome.error for outcome in outcomes if outcome.error]
        if errors:
            return Verdict(False, f"ends with {errors[0]}")
        said, count = text.strip(), len(self.shown)
        if passed(outcomes, examples):
            return Verdict(True, f"passes all {len(examples)} examples", said)
        where = "those not shown" if self.passes(outcomes[:count]) else "those shown"
        return Verdict(False, f"fails an example of {where}", said)


def passed(outcomes: Sequence[Outcome], examples: Sequence[tuple[Digits, Digits]]) -> bool:
    """Whether each outcome ends without an error, with what has to come out."""
    return all(
        not outcome.error and bool(outcome.values) and outcome.values[-1] == wanted
        for outcome, (_, wanted) in zip(outcomes, examples, strict=True)
    )


class ListPrograms(Task):
    """Programs of so many lines, shown by examples of what they do to lists of digits."""

    kind: Literal["list_programs"] = "list_programs"
    words: ClassVar[tuple[str, ...]] = tuple(
        dict.fromkeys(part for form in LINES for part in form.split("{k}") if len(part) > 1)
    )
    least: int = knob(2, "Lines at least", low=1, high=8)
    most: int = knob(3, "Lines at most", low=1, high=8)
    length: int = knob(4, "Digits of a list", low=4, high=16)
    shown: int = knob(2, "Examples shown", low=1, high=8)

    def problem(self, split: Split, seed: int) -> ListProgram:
        problem = super().problem(split, seed)
        assert isinstance(problem, ListProgram)
        return problem

    def draw(self, chance: Random) -> ListProgram | None:
        count = chance.randint(min(self.least, self.most), self.most)
        lines = tuple(Line.draw(chance) for _ in range(count))
        total = self.shown + HIDDEN
        starts = [[chance.randrange(10) for _ in range(self.length)] for _ in range(total)]
        try:
            walks = [walk(lines, start) for start in starts]
        except IndexError:
            return None
        if not all(any(w[n] != w[n + 1] for w in walks) for n in range(count)):
            return None  # a line that does nothing
        ends = [each[-1] for each in walks]
        if not all(ends) or any(a == b for a, b in zip(starts, ends, strict=True)):
            return None
        pairs = tuple(zip(starts, ends, strict=True))
        text = "".join(f"{line}\n" for line in lines)
        shown, hidden = pairs[: self.shown], pairs[self.shown :]
        prompt = " ".join(f"{digits(start)}>{digits(end)}" for start, end in shown) + "\n"
        # By its examples: with so few programs, those of a side would be told by their text.
        return ListProgram(f"list programs {prompt}", prompt, text, lines, shown, hidden)


def walk(lines: Sequence[Line], start: Digits) -> list[Digits]:
    """The list before any line, and after each. Raises IndexError, as a line does."""
    values = [start]
    for line in lines:
        values.append(line.of(values[-1]))
    return values


def digits(value: object) -> str:
    """A value as prompts have it: `3141` of a list of digits, `-` of an empty one."""
    if isinstance(value, list) and all(isinstance(x, int) and 0 <= x <= 9 for x in value):
        return "".join(map(str, value)) or "-"
    return "".join(str(value).split())
