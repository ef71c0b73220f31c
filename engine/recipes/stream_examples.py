"""Examples for models of several streams, from tasks in which reading and thinking overlap.

In come a problem and a chance; out comes an `Example` with the mask and positions of
`engine.reasoning.streams.script`, its predictions each stream's own next token.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal

import numpy as np

from engine.reasoning.streams.script import Script, in_rows, while_reading
from engine.reasoning.streams.words import StreamWords
from engine.tasks.ledger import BEGIN, LedgerProblem
from engine.tasks.running_sum import QUESTION, SILENCE, STREAMS, SumProblem, sums
from engine.training.data.packing import Example

Order = Literal["at once", "after all"]  # when a thought comes: with its clause, or after the last

SILENT = 0.2  # how much a row without a word counts beside one with
TURN = 6  # at most so many numbers are read before they are thought of, in one stream


def example(script: Script, at: np.ndarray, after: np.ndarray, weight: np.ndarray) -> Example:
    """Predict the tokens at places `after` from what stands at places `at`."""
    tokens = script.tokens_N
    weight = weight.astype(np.float32)
    return Example(tokens, at, tokens[after], weight, script.positions_N, script.visible_NN)


def reading(
    problem: LedgerProblem,
    words: StreamWords,
    apart: int,
    chance: Random,
    order: Order | None = None,
) -> Example:
    """Thoughts while the clauses come in: at once, some clauses late, or after all of them.

    `order`: the same for all examples; drawn for each where there is none.
    """
    ends = np.cumsum([len(clause) for clause in problem.clauses])
    clause = np.minimum(np.arange(len(ends)) + _lateness(len(ends), chance, order), len(ends) - 1)
    read = words.encode("read", problem.prompt)
    think = words.encode("think", [BEGIN, *"".join(problem.thoughts)])
    upto = [int(ends[c]) for c, said in zip(clause, problem.thoughts, strict=True) for _ in said]
    script = while_reading(read, think, [*upto, len(read)], apart)
    at = np.arange(len(read), len(read) + len(think) - 1)
    return example(script, at, at + 1, np.ones(len(at)))


def _lateness(clauses: int, chance: Random, order: Order | None) -> np.ndarray:
    """By how many clauses each thought is behind; what was seen once stays seen."""
    kind = chance.random()
    if order == "at once" or (order is None and kind < 0.45):
        return np.zeros(clauses, np.int64)
    if order == "after all" or kind < 0.75:
        return np.full(clauses, clauses)
    place = np.arange(clauses)
    late = np.array([chance.randrange(4) for _ in range(clauses)])
    return np.maximum.accumulate(place + late) - place


def together(problem: SumProblem, words: StreamWords, sees_SS: np.ndarray) -> Example:
    """All streams side by side, one token of each in every row."""
    tokens_RS = np.array([words.encode(name, problem.rows[name]) for name in STREAMS]).T
    script = in_rows(tokens_RS, sees_SS)
    speaks = script.stream_N >= STREAMS.index("think")
    at = np.flatnonzero(speaks[: -len(STREAMS)])
    after = at + len(STREAMS)
    silent = [words.encode(name, SILENCE)[0] for name in STREAMS]
    weight = np.where(np.isin(script.tokens_N[after], silent), SILENT, 1.0)
    return example(script, at, after, weight)


def in_turns(problem: SumProblem, words: StreamWords, chance: Random) -> Example:
    """The same in a single stream: read some, think of all of it, answer, read on."""
    said = turns(problem.rows["read"], problem.rows["ask"], chance)
    tokens_N = np.array([words.encode(name, letter)[0] for name, letter in said], np.int64)
    index_N, stream_N = np.arange(len(said)), np.zeros(len(said), np.int64)
    seen_NN = np.tri(len(said), dtype=bool)
    script = Script(tokens_N, stream_N, index_N, index_N, seen_NN)
    learnt = np.array([name in ("think", "say") for name, _ in said])
    at = np.flatnonzero(learnt[1:])
    return example(script, at, at + 1, np.ones(len(at)))


def turns(read: str, ask: str, chance: Random) -> list[tuple[str, str]]:
    """(stream, letter) of a conversation in which a turn takes a few numbers or a question."""
    numbers = dict(sums(read))
    said: list[tuple[str, str]] = []
    waiting: list[int] = []
    length = chance.randint(1, TURN)
    for row in range(len(read)):
        if row in numbers:
            said += [("read", letter) for letter in read[row - 1 : row + 1]]
            waiting.append(numbers[row])
        asked = ask[row] == QUESTION
        if not asked and len(waiting) < length:
            continue
        said += [("ask", QUESTION)] if asked else []
        said += [("think", digit) for total in waiting for digit in f"{total:02}"]
        latest = _latest(said)
        said += [("say", digit) for digit in latest] if asked else []
        waiting, length = [], chance.randint(1, TURN)
    return said


def _latest(said: Sequence[tuple[str, str]]) -> str:
    """The last sum thought of."""
    return "".join(letter for name, letter in said if name == "think")[-2:]
