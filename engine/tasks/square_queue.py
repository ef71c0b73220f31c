"""A queue of squares that anybody may take from: work that is divided while it is done.

In comes a drawing of digits, out come entries such as `3a7b:` and what each has to become. The
answer may be written by several workers: an entry counts when anybody has said its square.
"""

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Literal

from engine.core.config import knob
from engine.tasks.task import Problem, Split, Task, Verdict

SAID = re.compile(r"([a-z])(\d)=(\d\d);", re.ASCII)


@dataclass(frozen=True, slots=True)
class QueueProblem(Problem):
    """`entries`: for each letter from a on, its digit."""

    entries: tuple[int, ...]

    def said(self, place: int) -> str:
        """How the square of an entry is written; 6 characters."""
        digit = self.entries[place]
        return f"{string.ascii_lowercase[place]}{digit}={digit * digit:02};"

    def done(self, texts: Iterable[str]) -> dict[str, bool]:
        """Of each letter that any text has a square of: whether all said of it are right."""
        found: dict[str, bool] = {}
        for text in texts:
            for match in SAID.finditer(text):
                place = string.ascii_lowercase.index(match[1])
                right = place < len(self.entries) and match[0] == self.said(place)
                found[match[1]] = found.get(match[1], True) and right
        return found

    def check(self, text: str) -> Verdict:
        found = self.done([text])
        wrong = sorted(letter for letter, right in found.items() if not right)
        answer = "".join(sorted(found))
        if wrong:
            return Verdict(False, f"{wrong[0]} is wrong", answer)
        if SAID.sub("", text).strip("-\n "):
            return Verdict(False, "says something else too", answer)
        missing = len(self.entries) - len(found)
        if missing:
            return Verdict(False, f"{missing} of {len(self.entries)} squares are missing", answer)
        return Verdict(True, "all squares are right", answer)


class SquareQueue(Task):
    """Squares of digits; how many varies up to `entries`."""

    kind: Literal["square_queue"] = "square_queue"
    entries: int = knob(6, "Squares at most", low=1, high=20)
    least: int = knob(3, "Squares at least", low=1, high=20)

    def draw(self, chance: Random) -> QueueProblem:
        count = chance.randint(min(self.least, self.entries), self.entries)
        entries = tuple(chance.randrange(10) for _ in range(count))
        letters = string.ascii_lowercase
        prompt = "".join(f"{digit}{letters[place]}" for place, digit in enumerate(entries)) + ":"
        bare = QueueProblem(prompt, prompt, "", entries)
        answer = "".join(bare.said(place) for place in range(count))
        return QueueProblem(prompt, prompt, answer, entries)


def queues(split: Split, count: int) -> list[QueueProblem]:
    """The first `count` different problems of that side."""
    found = SquareQueue().problems(split, count)
    return [problem for problem in found if isinstance(problem, QueueProblem)]
