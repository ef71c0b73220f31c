"""A running sum over numbers that keep arriving, asked for at any moment.

Time is counted in rows: in each row every stream has one token, `_` where it has nothing to say.
In come `read` (signed digits) and `ask` (questions); wanted are `think` (the sum after each
number, modulo 100) and `say` (the latest sum thought when the question came).
"""

from dataclasses import dataclass
from random import Random
from typing import Literal

from engine.core.config import knob
from engine.tasks.task import Problem, Task, Verdict

SILENCE, QUESTION = "_", "?"
LAG = 2  # rows from what is heard to what is said of it: one to hear it, one to say it
DIGITS = "0123456789"
LETTERS = {  # what each stream is written in
    "read": f"{DIGITS}+-{SILENCE}",
    "ask": f"{QUESTION}{SILENCE}",
    "think": f"{DIGITS}{SILENCE}",
    "say": f"{DIGITS}{SILENCE}",
}
STREAMS = tuple(LETTERS)


@dataclass(frozen=True, slots=True)
class SumProblem(Problem):
    """`rows`: what each stream holds, by name, all of one length; wanted ones included."""

    rows: dict[str, str]

    @property
    def questions(self) -> list[int]:
        """The rows in which a question comes."""
        return [row for row, letter in enumerate(self.rows["ask"]) if letter == QUESTION]

    def total(self, row: int) -> str:
        """The sum of what has been read by a row, in two digits."""
        return f"{sums(self.rows['read'][: row + 1])[-1][1]:02}"

    def check(self, text: str) -> Verdict:
        said = " ".join(text.replace(SILENCE, " ").split())
        if said != self.answer:
            return Verdict(False, f"says {said!r} where it is {self.answer!r}", said)
        return Verdict(True, "is the sum at each question", said)


class RunningSum(Task):
    """Numbers from -9 to 9 with pauses between them, and questions."""

    kind: Literal["running_sum"] = "running_sum"
    rows: int = knob(32, "Rows of time", low=8, high=512)
    pause: float = knob(0.2, "Chance that a row without a number stays so", low=0.0, high=0.95)
    ask: float = knob(0.12, "Chance of a question in a row where one may come", low=0.0, high=1.0)

    def draw(self, chance: Random) -> SumProblem | None:
        read = self._numbers(chance)
        ask = [SILENCE] * self.rows
        row = 4  # the first sum has been thought by then
        while row + LAG + 1 < self.rows:
            if chance.random() < self.ask:
                ask[row] = QUESTION
                row += 2  # as many as its answer takes
            row += 1
        heard, asked = "".join(read), "".join(ask)
        say = answers(asked, heard)
        rows = dict(zip(STREAMS, (heard, asked, thoughts(heard), say), strict=True))
        if not say.strip(SILENCE):
            return None
        prompt = f"read {rows['read']}\nask {rows['ask']}\nsay "
        answer = " ".join(say.replace(SILENCE, " ").split())
        return SumProblem(prompt, prompt, answer, rows)

    def _numbers(self, chance: Random) -> list[str]:
        read: list[str] = []
        while len(read) < self.rows:
            if len(read) + 1 < self.rows and (not read or chance.random() >= self.pause):
                read += chance.choice("+-"), str(chance.randrange(10))
            else:
                read.append(SILENCE)
        return read


def sums(read: str) -> list[tuple[int, int]]:
    """(row of its digit, the sum with it) of each number in `read`."""
    found, total = [], 0
    for row, letter in enumerate(read):
        if letter in "+-" and row + 1 < len(read):
            total = (total + int(letter + read[row + 1])) % 100
            found.append((row + 1, total))
    return found


def thoughts(read: str) -> str:
    """The two digits of each sum, the first of them `LAG` rows after its number."""
    think = [SILENCE] * (len(read) + LAG + 2)
    for row, total in sums(read):
        think[row + LAG : row + LAG + 2] = f"{total:02}"
    return "".join(think[: len(read)])


def answers(ask: str, read: str) -> str:
    """`LAG` rows after each question the latest sum both of whose digits were thought by then."""
    say, total = [SILENCE] * len(ask), sums(read)
    for row, letter in enumerate(ask):
        thought = [value for at, value in total if at + LAG < row]
        if letter == QUESTION and thought:
            say[row + LAG : row + LAG + 2] = f"{thought[-1]:02}"
    return "".join(say)
