"""Execution signal: what candidates of the next line do on the examples, as text of a prompt.

A line `#0` has the values now, after the code so far; lines `#1`, `#2` … have each candidate's
lines with the values after them, marked where they are those wanted, or the error that stopped it
(EG-CFG, arXiv 2506.10948, section 3.2: traces of candidate programs on the tests, put between the
task and the code).
"""

from collections.abc import Sequence
from typing import NamedTuple

from engine.tasks.list_programs import digits
from engine.tasks.sandbox.interpreter import Outcome

LONGEST = 10  # characters of a value
PASSES = "="  # behind a value that is the one wanted: the test of that example passes
ERRORS = ("IndexError", "SyntaxError", "TypeError", "NameError", "ValueError", "Refused", "Limit")
CANDIDATES = 4  # with a mark that is one token
MARKS = tuple(f"#{number} " for number in range(CANDIDATES + 1))


class Tried(NamedTuple):
    """A candidate: its lines, and what each example's run came to after the code so far."""

    lines: tuple[str, ...]
    outcomes: tuple[Outcome, ...]  # of the whole program; the code so far counts in `values`


def values_after(outcomes: Sequence[Outcome], place: int, wanted: Sequence[object] = ()) -> str:
    """Each example's value after so many lines, marked where it is the one `wanted`, or what
    stopped it there; "" where none came so far."""
    said = []
    for number, outcome in enumerate(outcomes):
        if place < len(outcome.values):
            value = outcome.values[place]
            passes = number < len(wanted) and value == wanted[number]
            said.append(digits(value)[:LONGEST] + (PASSES if passes else ""))
        else:
            stopped = outcome.error if place == len(outcome.values) else ""
            said.append(stopped or "_")
    return "" if all(each == "_" for each in said) else " ".join(said)


def signal(
    now: Sequence[Outcome], tried: Sequence[Tried], before: int, wanted: Sequence[object]
) -> str:
    """`now`: what each example came to by the code so far, which has `before` lines; `wanted`: what
    each has to come to in the end."""
    last = [Outcome(each.values[-1:], each.error) for each in now]
    values = [
        each.error or values_after([each], 0, wanted[number : number + 1])
        for number, each in enumerate(last)
    ]
    text = [MARKS[0] + " ".join(values)]
    for number, each in enumerate(tried, 1):
        for place, line in enumerate(each.lines, before):
            if said := values_after(each.outcomes, place, wanted):
                text.append(f"#{number} {line} {said}")
    return "".join(f"{line}\n" for line in text)
