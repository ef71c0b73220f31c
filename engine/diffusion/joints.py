"""Joint distributions of list tasks, known exactly: all answers to a prompt, each equally likely.

A prompt is a task, a list of different items and, where the task replaces one, what and where; an
answer has as many items as the list. What is known of such a joint is counted: marginals after some
positions are revealed, and how much of a step's tokens hangs together (conditional total
correlation, ParallelBench, arXiv 2510.04767).

Shape letters: S answers of a prompt, L positions of an answer, T tokens of prompt and answer, V
vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Literal, get_args

import numpy as np

ITEMS, LONGEST = 10, 6  # different items there are; of a list, at most
TaskName = Literal["copy", "replace_index", "replace_random", "shuffle", "same"]
TASKS: tuple[str, ...] = get_args(TaskName)
PLACE = ITEMS  # the first of LONGEST tokens that name a place
NAMES = PLACE + LONGEST  # the first of the tasks' tokens
BLANK, SEPARATOR, MASK = (NAMES + len(TASKS) + i for i in range(3))
VOCAB = MASK + 1
WORDS = (
    *(str(item) for item in range(ITEMS)), *(f"@{place}" for place in range(LONGEST)),
    *TASKS, "–", "=", "□",
)  # fmt: skip


@dataclass(frozen=True)
class Joint:
    """A prompt and what may be answered."""

    prompt: np.ndarray  # int64, ends with the separator
    answers_SL: np.ndarray  # int64, all different and equally likely

    def canvas(self, answers_SL: np.ndarray, revealed_SL: np.ndarray) -> np.ndarray:
        """tokens_ST: the prompt and each answer, masks where it is not revealed."""
        shown_SL = np.where(revealed_SL, answers_SL, MASK)
        return np.concatenate([np.tile(self.prompt, (len(shown_SL), 1)), shown_SL], axis=1)

    def marginals(self, answers_NL: np.ndarray, revealed_NL: np.ndarray) -> np.ndarray:
        """p_NLV of each position given what of each of N texts is revealed; zeros where no answer
        goes on from that."""
        fits_NS = self._fits(answers_NL, revealed_NL)
        one_SLV = np.eye(VOCAB)[self.answers_SL]
        counts_NLV = np.einsum("ns,slv->nlv", fits_NS.astype(float), one_SLV)
        return counts_NLV / np.maximum(fits_NS.sum(1), 1)[:, None, None]

    def dependence(self, revealed_SL: np.ndarray, chosen_SL: np.ndarray) -> np.ndarray:
        """Nats by which, at each answer, its chosen tokens are likelier together than apart, given
        what of it is revealed. The mean over answers is the conditional total correlation."""
        answers = self.answers_SL
        fits_SS = self._fits(answers, revealed_SL)
        together_SS = fits_SS & self._fits(answers, chosen_SL)
        ways_S = fits_SS.sum(1)
        joint_S = np.log(together_SS.sum(1) / ways_S)
        equal_SSL = answers[:, None] == answers[None]
        apart_SL = np.log((fits_SS[..., None] & equal_SSL).sum(1) / ways_S[:, None])
        return joint_S - np.where(chosen_SL, apart_SL, 0.0).sum(1)

    def _fits(self, texts_NL: np.ndarray, revealed_NL: np.ndarray) -> np.ndarray:
        """Which answers agree with each text where it is revealed, bool [N, S]."""
        equal_NSL = texts_NL[:, None] == self.answers_SL[None]
        return (equal_NSL | ~revealed_NL[:, None]).all(-1)


def draw(task: str, length: int, chance: np.random.Generator) -> Joint:
    """A prompt of `task` over a list of `length` items."""
    items = chance.permutation(ITEMS)
    given, new, place = items[:length], int(items[length]), int(chance.integers(length))
    says = {"replace_index": (PLACE + place, new), "replace_random": (BLANK, new)}
    what = says.get(task, (BLANK, BLANK))
    prompt = np.array([NAMES + TASKS.index(task), *given, *what, SEPARATOR], np.int64)
    return Joint(prompt, _ANSWERS[task](given, place, new))


@cache
def _orders(length: int) -> np.ndarray:
    """Every order of so many."""
    return np.array(list(permutations(range(length))))


def _replaced(given: np.ndarray, places: range, new: int) -> np.ndarray:
    answers = np.tile(given, (len(places), 1))
    answers[np.arange(len(places)), list(places)] = new
    return answers


_ANSWERS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "copy": lambda given, place, new: given[None],
    "replace_index": lambda given, place, new: _replaced(given, range(place, place + 1), new),
    "replace_random": lambda given, place, new: _replaced(given, range(len(given)), new),
    "shuffle": lambda given, place, new: given[_orders(len(given))],
    "same": lambda given, place, new: np.tile(given[:, None], (1, len(given))),
}
