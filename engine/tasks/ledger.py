"""A ledger read entry by entry; the question at its end asks for the balance after one of them.

What there is to think about an entry (the balance before it, the entry, the balance after it) needs
that entry and earlier thoughts only, so a reader may think while it reads.
"""

import re
import string
from dataclasses import dataclass
from random import Random
from typing import Literal

from engine.core.config import knob
from engine.tasks.task import Problem, Task, Verdict

BEGIN = ">"  # what a thinker says before it has read anything
LETTERS = {  # what each stream is written in
    "read": f"{string.ascii_lowercase}0123456789+-?;",
    "think": f"{string.ascii_lowercase}0123456789+-=;.{BEGIN}",
}
VALUE = re.compile(r"=(\d\d)\.\s*$", re.ASCII)


@dataclass(frozen=True, slots=True)
class LedgerProblem(Problem):
    """Such as `a+12;b-07;?b;`, to be answered by `=05.` after a thought for each entry."""

    clauses: tuple[str, ...]  # as they are read, the question last
    thoughts: tuple[str, ...]  # what to say about each; about the question: its answer

    def check(self, text: str) -> Verdict:
        found = VALUE.search(text)
        if found is None:
            return Verdict(False, "does not end in a value of two digits")
        said, wanted = found[1], self.answer.strip("=.")
        if said != wanted:
            return Verdict(False, f"says {said} where it is {wanted}", said)
        return Verdict(True, "is the balance", said)


class Ledger(Task):
    """Entries of two digits, labelled in the order of letters; balances are modulo 100."""

    kind: Literal["ledger"] = "ledger"
    entries: int = knob(10, "Entries before the question", low=1, high=26)
    largest: int = knob(99, "Largest amount of an entry", low=1, high=99)

    def draw(self, chance: Random) -> LedgerProblem:
        balance, balances = 0, []
        clauses, thoughts = [], []
        for label in string.ascii_lowercase[: self.entries]:
            sign, amount = chance.choice("+-"), chance.randrange(self.largest + 1)
            before, change = balance, amount if sign == "+" else -amount
            balance = (before + change) % 100
            balances.append(balance)
            clauses.append(f"{label}{sign}{amount:02};")
            thoughts.append(f"{label}{before:02}{sign}{amount:02}={balance:02};")
        asked = chance.randrange(self.entries)
        answer = f"={balances[asked]:02}."
        clauses.append(f"?{string.ascii_lowercase[asked]};")
        prompt = "".join(clauses)
        return LedgerProblem(prompt, prompt, answer, tuple(clauses), (*thoughts, answer))
