"""Workers over one cache who take squares from one queue: steps until all have been said.

In come problems and as many workers as the config says; out come for each problem whether every
square was right and after how many steps all had been said. Each problem is a session of its own.
"""

from collections.abc import Iterable

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import LoadedModel
from engine.reasoning.threads.reasoner import Reasoner
from engine.tasks.square_queue import QueueProblem

MODEL = "square-queue-170k"
NAMES = ("alice", "bob", "carol", "dave")
HEADER = "{worker}"
MOST = 160  # steps after which a session is given up


def shared(config: ReasoningConfig) -> ReasoningConfig:
    """`config` with what sessions of shared work need: a worker's block begins with its name.

    Nobody hears of their events, so attention is not sampled for them.
    """
    return update(config, {"header": HEADER, "step_end": "\n", "step_tokens": 1 << 20, "pages": 256,
                           "budget": MOST, "page_size": 16, "attention_every": 0})  # fmt: skip


def work(
    config: ReasoningConfig, loaded: LoadedModel, problems: Iterable[QueueProblem]
) -> np.ndarray:
    """scores_P2: whether all of a problem was said and right, and the steps until it was.

    A problem that is not all said takes as many steps as its workers went on for.
    """
    if loaded.tokenizer is None:
        raise BadInput(f"model {loaded.name!r}: it has no tokenizer; take {MODEL}")
    config = shared(config)
    return np.array([_session(config, loaded, problem) for problem in problems], np.float64)


def _session(
    config: ReasoningConfig, loaded: LoadedModel, problem: QueueProblem
) -> tuple[bool, int]:
    assert loaded.tokenizer is not None
    reasoner = Reasoner(config, loaded, VirtualClock(), lambda event: None)
    reasoner.read(loaded.tokenizer.encode(problem.prompt))
    for name in NAMES[: config.workers]:
        reasoner.start(name)
    threads = reasoner.table.threads
    while reasoner.step() and reasoner.number < MOST:
        texts = [loaded.tokenizer.decode(thread.tokens) for thread in threads.values()]
        done = problem.done(texts)
        if len(done) >= len(problem.entries):
            return all(done.values()), reasoner.number
    return False, reasoner.number
