"""Reads what a Countdown answer does: a list of steps, or one expression, without running text.

In come a completion and the given numbers; out come the value reached, the given numbers used and
a canonical form in which the order of operands and of independent steps does not matter.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST = 500  # characters of an answer, and so the depth of its parentheses / 2
STEP = re.compile(r"([0-9]{1,9})([-+*/])([0-9]{1,9})=([0-9]{1,9})")
TOKEN = re.compile(r"[0-9]{1,9}|[-+*/()]")


class Unreadable(Exception):
    """An answer that breaks a rule; the message says which."""


@dataclass(frozen=True, slots=True)
class Term:
    """A value, the given numbers in it (sorted) and how it came about, canonically written."""

    value: int
    used: tuple[int, ...]
    form: str


Inner = Callable[[list[str], int], tuple[Term, int]]


def read(text: str, numbers: Sequence[int]) -> tuple[int, tuple[int, ...], str]:
    """(value reached, given numbers used in order of size, canonical form). Raises Unreadable."""
    text = text.strip()
    if len(text) > LONGEST:
        raise Unreadable("is too long")
    lines = [line.strip() for line in text.splitlines()]
    if lines and all(STEP.fullmatch(line) for line in lines):
        term = _replay(lines, numbers)
    elif len(lines) == 1:
        term = _expression(lines[0])
    else:
        raise Unreadable("is neither a list of steps nor one expression")
    return term.value, term.used, term.form


def _replay(lines: list[str], numbers: Sequence[int]) -> Term:
    held = [Term(number, (number,), str(number)) for number in numbers]
    for line in lines:
        match = STEP.fullmatch(line)
        assert match is not None
        left, right = (_take(held, int(match[group]), line) for group in (1, 3))
        made = combine(left, match[2], right)
        if made.value != int(match[4]):
            raise Unreadable(f"{line} is not so: it is {made.value}")
        held.append(made)
    return held[-1]


def _take(held: list[Term], value: int, line: str) -> Term:
    for place in reversed(range(len(held))):  # what was made last is what a chain goes on with
        if held[place].value == value:
            return held.pop(place)
    raise Unreadable(f"{line} uses {value}, which is not there")


def combine(left: Term, operation: str, right: Term) -> Term:
    """One operation under Countdown's rules. Raises Unreadable where they forbid it."""
    a, b = left.value, right.value
    if operation == "-" and a < b:
        raise Unreadable(f"{a}-{b} is below zero")
    if operation == "/" and (b == 0 or a % b):
        raise Unreadable(f"{a}/{b} is not a whole number")
    value = {"+": a + b, "-": a - b, "*": a * b}[operation] if operation != "/" else a // b
    forms = [left.form, right.form]
    if operation in "+*":
        forms.sort()
    form = f"({forms[0]}{operation}{forms[1]})"
    return Term(value, tuple(sorted(left.used + right.used)), form)


def _expression(line: str) -> Term:
    """`(3+5)*7-2`, with or without `=24` behind it."""
    body, equals, said = line.partition("=")
    tokens = TOKEN.findall(body)
    if "".join(tokens) != body.replace(" ", "") or not tokens:
        raise Unreadable("is not an expression")
    term, end = _sum(tokens, 0)
    if end != len(tokens):
        raise Unreadable(f"has a stray {tokens[end]!r}")
    if equals and said.strip() != str(term.value):
        raise Unreadable(f"says {said.strip()!r} where it is {term.value}")
    return term


def _sum(tokens: list[str], place: int) -> tuple[Term, int]:
    return _chain(tokens, place, "+-", _product)


def _product(tokens: list[str], place: int) -> tuple[Term, int]:
    return _chain(tokens, place, "*/", _atom)


def _chain(tokens: list[str], place: int, operations: str, inner: Inner) -> tuple[Term, int]:
    """Operations of one rank from left to right, each operand read by `inner`."""
    term, place = inner(tokens, place)
    while place < len(tokens) and tokens[place] in operations:
        operation = tokens[place]
        right, place = inner(tokens, place + 1)
        term = combine(term, operation, right)
    return term, place


def _atom(tokens: list[str], place: int) -> tuple[Term, int]:
    if place == len(tokens):
        raise Unreadable("ends too early")
    token = tokens[place]
    if token == "(":
        term, place = _sum(tokens, place + 1)
        if place == len(tokens) or tokens[place] != ")":
            raise Unreadable("has an open parenthesis")
        return term, place + 1
    if not token.isdigit():
        raise Unreadable(f"has a stray {token!r}")
    return Term(int(token), (int(token),), token), place + 1
