"""Countdown thought about on parallel paths: searches that start differently, and a summary.

In come a problem and a chance, out come words. All paths read the problem alone and search it
serially; path i begins with the i-th likeliest first step and goes on from there, so that its first
words commit it. The summary says the first solution that any path has found.

    prompt   serial T : a b c d :
    path     <think2> try a * b r c d  [search] try …  ! steps <|eos|>
    summary  <summary> ! steps <|eos|>, or x <|eos|>
"""

from collections.abc import Sequence
from random import Random

from engine.tasks.countdown.search import Search, ordered
from engine.tasks.countdown.task import CountdownProblem
from engine.tasks.countdown.traces import (
    EOS,
    FOUND,
    NOTHING,
    NUMBERS,
    SERIAL,
    WORDS,
    prompt,
    returned,
    tried,
)

PATHS = 8  # path words there are
THINK = tuple(f"<think{number}>" for number in range(1, PATHS + 1))
SUMMARY = "<summary>"
PATH_WORDS = (*WORDS, *THINK, SUMMARY)
IDS = NUMBERS | {word: len(WORDS) + at for at, word in enumerate((*THINK, SUMMARY))}


def path_ids(words: Sequence[str]) -> list[int]:
    """The token numbers of words of paths."""
    return [IDS[word] for word in words]


def path_words(tokens: Sequence[int]) -> list[str]:
    """The words of token numbers."""
    return [PATH_WORDS[token] for token in tokens]


def asked(problem: CountdownProblem) -> list[str]:
    """What all paths and the summary read."""
    return prompt(SERIAL, problem)


def searches(
    problem: CountdownProblem, width: int, chance: Random, search: Search
) -> list[list[str]]:
    """What paths 1 to `width` write until each has found a solution, their ends included."""
    moves = ordered(problem.numbers, problem.target, chance, search.noise)
    starts = [place % len(moves) for place in range(width)]
    return [tried(problem, moves[at:] + moves[:at], chance, search) for at in starts]


def summary(paths: Sequence[Sequence[str]]) -> list[str]:
    """What the summary says of what paths have written, its end included."""
    for written in paths:
        whole = [*written, EOS] if FOUND in written and _ended(written) else []
        if whole:
            return [*returned(whole), EOS]
    return [NOTHING, EOS]


def _ended(written: Sequence[str]) -> bool:
    """Whether all steps of the solution stand there: three of four words."""
    return len(written) - 1 - list(written).index(FOUND) == 12
