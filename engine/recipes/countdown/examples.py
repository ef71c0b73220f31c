"""Traces of Countdown searches as examples to imitate.

An example's number says which problem it is of and which of its contexts; a context longer than the
window is cut there. Shape letters: see `examples`.
"""

from random import Random

from engine.tasks.countdown.search import Search, even_problem
from engine.tasks.countdown.traces import Context, ids, parallel, serial
from engine.tasks.task import Split
from engine.training.data.packing import Example, spoken

KINDS = 4  # examples of a problem: its serial search, a parent, and two children
SEARCH = Search()


def example(number: int, split: Split, window: int) -> Example:
    """The example of that number: of problem `number // KINDS`, in turn its kinds of contexts."""
    seed, kind = divmod(number, KINDS)
    problem, chance = even_problem(split, seed), Random(f"traces {split} {number}")
    if kind == 0:
        return imitated(serial(problem, chance, SEARCH), window)
    contexts = parallel(problem, chance, SEARCH)
    if kind == 1:
        return imitated(contexts[0], window)
    return imitated(contexts[1 + int(chance.random() * (len(contexts) - 1))], window)


def imitated(context: Context, window: int) -> Example:
    """Learn what a context's writer wrote, as far as the window goes."""
    return spoken(ids(context.words[:window]), context.own[:window])
