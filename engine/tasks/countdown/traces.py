"""Countdown solved by writing a search down: serially, or by threads that are spawned and joined.

In come a problem and a seed, out come contexts of words: what is given and what is to be learnt.
A serial context tries first steps one after the other. A parent spawns a child for each first step
it would try, and reads what they return; a child knows the target and its own message alone
(adaptive parallel reasoning, arXiv 2504.15466, sections 3 and 4).

    serial   T : a b c d :  try a * b r c d  [search] try …      ! steps <|eos|>
    parallel T : a b c d :  spawn a * b r c d spawn … join  [x or ! steps of each child]  ! steps
    child    T : a * b r c d :  [search]                         ! steps <|eos|>, or x <|eos|>

A [search] of three numbers writes for each step `a + b r other` and the four results that can be
made of the last two, `.` for one that is not allowed, and stops at the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from engine.tasks.countdown.search import LARGEST, Move, Search, ordered, results
from engine.tasks.countdown.task import CountdownProblem, Step
from engine.tasks.task import Verdict

BOS, EOS = "<|bos|>", "<|eos|>"
SERIAL, PARALLEL, CHILD, TRY, SPAWN, JOIN = "serial", "parallel", "child", "try", "spawn", "join"
FOUND, NOTHING, COLON, NOT_ALLOWED = "!", "x", ":", "."
OPERATIONS = "+-*/"
WORDS = (
    *(BOS, EOS, SERIAL, PARALLEL, CHILD, TRY, SPAWN, JOIN, FOUND, NOTHING, COLON, NOT_ALLOWED),
    *OPERATIONS,
    *map(str, range(1, LARGEST + 1)),
)
NUMBERS = {word: number for number, word in enumerate(WORDS)}


@dataclass(slots=True)
class Context:
    """The words of one context window; `own[i]` says whether its writer wrote word i."""

    words: list[str] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)

    def given(self, words: Sequence[str]) -> None:
        """Words from outside: a prompt, or what children return."""
        self.words += words
        self.own += [False] * len(words)

    def write(self, words: Sequence[str]) -> None:
        """Words to be learnt."""
        self.words += words
        self.own += [True] * len(words)


def ids(words: Sequence[str]) -> list[int]:
    """The token numbers of words of traces."""
    return [NUMBERS[word] for word in words]


def words_of(tokens: Sequence[int]) -> list[str]:
    """The words of token numbers."""
    return [WORDS[token] for token in tokens]


def prompt(kind: str, problem: CountdownProblem) -> list[str]:
    """What a serial or a parallel context begins with."""
    return [kind, str(problem.target), COLON, *map(str, problem.numbers), COLON]


def child_prompt(parent: Sequence[str], message: Sequence[str]) -> list[str]:
    """What a child begins with: the target in its parent's prompt, and its parent's message."""
    return [CHILD, *parent[1:3], *message, COLON]


def messages(written: Sequence[str]) -> list[list[str]]:
    """The messages of all `spawn`s in what a parent wrote, up to `join`."""
    found: list[list[str]] = []
    for word in written:
        if word == JOIN:
            break
        if word == SPAWN:
            found.append([])
        elif found:
            found[-1].append(word)
    return found


def returned(written: Sequence[str]) -> list[str]:
    """What a child that wrote this hands back: its last answer, or that there is none."""
    if not written or written[-1] != EOS or FOUND not in written:
        return [NOTHING]
    return list(written[len(written) - 1 - written[::-1].index(FOUND) : -1])


def steps(written: Sequence[str]) -> list[Step] | None:
    """The steps after the last `!`; None where there is no ended answer of whole steps."""
    answer = returned(written)[1:]
    rows = [answer[at : at + 4] for at in range(0, len(answer), 4)]
    if not rows or not all(_is_step(row) for row in rows):
        return None
    return [Step(int(a), operation, int(b), int(r)) for a, operation, b, r in rows]


def judge(problem: CountdownProblem, written: Sequence[str]) -> Verdict:
    """Whether what a context wrote ends in steps that replay to the target."""
    found = steps(written)
    if found is None:
        return Verdict(False, "gives no answer")
    return problem.check("\n".join(map(str, found)))


def serial(problem: CountdownProblem, chance: Random, search: Search) -> Context:
    """A serial search until it finds a solution, as long as that takes."""
    context = Context()
    context.given(prompt(SERIAL, problem))
    moves = ordered(problem.numbers, problem.target, chance, search.noise)
    context.write(tried(problem, moves, chance, search))
    return context


def tried(
    problem: CountdownProblem, moves: Sequence[Move], chance: Random, search: Search
) -> list[str]:
    """Tries of these first steps one after the other, until a solution and the end."""
    words: list[str] = []
    for move in moves:
        written, answer = explore(move, problem.target, chance, search)
        words += [TRY, *_state(move), *written]
        if answer is not None:
            return words + _ending(answer)
    return words + _ending(None)


def parallel(problem: CountdownProblem, chance: Random, search: Search) -> list[Context]:
    """A parent and its children; how many there are is drawn evenly from 1 to `search.children`."""
    parent, children, answers = Context(), [], []
    parent.given(prompt(PARALLEL, problem))
    count = 1 + int(chance.random() * search.children)
    for move in ordered(problem.numbers, problem.target, chance, search.noise)[:count]:
        parent.write([SPAWN, *_state(move)])
        child = Context()
        child.given(child_prompt(parent.words, _state(move)))
        written, answer = explore(move, problem.target, chance, search)
        child.write([*written, *_ending(answer)])
        children.append(child)
        answers.append(answer)
    parent.write([JOIN])
    for answer in answers:
        parent.given(_ending(answer)[:-1])
    parent.write(_ending(next((answer for answer in answers if answer is not None), None)))
    return [parent, *children]


def explore(
    first: Move, target: int, chance: Random, search: Search
) -> tuple[list[str], list[str] | None]:
    """The search after a first step: its words, and the solution's, first step included."""
    written: list[str] = []
    for move in ordered(first.numbers, target, chance, search.noise):
        pair = (move.rest[0], move.result)
        written += [*_step(move), str(move.rest[0])]
        for operation, value in zip(OPERATIONS, results(*pair), strict=True):
            written.append(NOT_ALLOWED if value is None else str(value))
            if value == target:
                last = [str(max(pair)), operation, str(min(pair)), str(value)]
                return written, [*_step(first), *_step(move), *last]
    return written, None


def _ending(answer: list[str] | None) -> list[str]:
    return [NOTHING, EOS] if answer is None else [FOUND, *answer, EOS]


def _step(move: Move) -> list[str]:
    return [str(move.left), move.operation, str(move.right), str(move.result)]


def _state(move: Move) -> list[str]:
    return [*_step(move), *map(str, move.rest)]


def _is_step(row: Sequence[str]) -> bool:
    return len(row) == 4 and row[1] in OPERATIONS and all(row[i].isdigit() for i in (0, 2, 3))
