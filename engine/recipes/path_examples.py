"""Examples of parallel paths and their summary, from searches for Countdown's answers.

An example's number says which problem it is of, how wide it is and where its paths are cut: where
the first of them ends, or by a budget. Shape letters: see `packing`.
"""

from random import Random

import numpy as np

from engine.reasoning.paths.script import firsts, side_by_side
from engine.tasks.countdown.paths import SUMMARY, THINK, asked, path_ids, searches, summary
from engine.tasks.countdown.search import Search, even_problem
from engine.tasks.task import Split
from engine.training.data.packing import Example

WIDTHS = (1, 2, 2, 4, 4, 4, 8, 8, 8)  # one of them is drawn
SEARCH = Search()
FIRST = 0.5  # share of the examples whose paths all end when the first does
SHORTEST = 12  # budget of a path, in tokens
LAST = 16  # tokens that a summary takes, its mark included
LONGEST = 230  # tokens of a path
WEIGHT = 3.0  # of a summary's token: there are few of them


def example(number: int, split: Split, window: int) -> Example:
    """The example of that number, always the same one, of at most `window` tokens."""
    problem, chance = even_problem(split, number), Random(f"paths {split} {number}")
    width = WIDTHS[int(chance.random() * len(WIDTHS))]
    whole = searches(problem, width, chance, SEARCH)
    read = asked(problem)
    room = min(LONGEST, (window - len(read) - LAST) // width)
    cut = min(map(len, whole))
    if chance.random() >= FIRST:
        cut = SHORTEST + int(chance.random() * (room - SHORTEST + 1))
    return spoken(read, whole, min(cut, room))


def spoken(read: list[str], whole: list[list[str]], cut: int) -> Example:
    """Learn what each path says, and what the summary says of what they have written.

    A path says at most `cut` words. The last of them is learnt and never written: it ends the path,
    or nothing comes after it.
    """
    said = [words[:cut] for words in whole]
    paths = [[THINK[place], *words[:-1]] for place, words in enumerate(said)]
    last = summary(paths)
    written = [path_ids(words) for words in paths]
    script = side_by_side(path_ids(read), written, path_ids([SUMMARY, *last[:-1]]))
    target = [path_ids(words) for words in (*said, last)]
    begins = firsts(written, len(read))
    at_L = np.concatenate(
        [begin + np.arange(len(words)) for begin, words in zip(begins, target, strict=True)]
    )
    weight_L = np.ones(len(at_L), np.float32)
    weight_L[-len(last) :] = WEIGHT
    target_L = np.array([token for words in target for token in words], np.int64)
    return Example(
        script.tokens_N, at_L, target_L, weight_L, script.positions_N, script.visible_NN,
        script.stream_N,
    )  # fmt: skip
