"""A live engine over a toy model: token k is the k-th letter, and after it comes the next."""

import string
import time

import numpy as np

from engine.core.clock import WallClock
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Built, Facts
from engine.inference.requests.step import Result
from workbench.live.live import LiveEngine

LETTERS = string.ascii_lowercase + string.digits + " _\n."
CONTEXT = 256


class ToyTokenizer:
    template = None
    special_texts: dict[str, str] = {}

    def encode(self, text, special=True):
        return [LETTERS.index(letter) for letter in text if letter in LETTERS]

    def decode(self, tokens, special=False):
        return "".join(LETTERS[token % len(LETTERS)] for token in tokens)


class ToyExecutor:
    """After letter k comes letter k + 1; a step takes `seconds`."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds
        self.steps = 0
        self.facts = Facts("toy", "cpu", len(LETTERS), CONTEXT, 1, 1, 64.0)

    def execute(self, step):
        self.steps += 1
        if self.seconds:
            time.sleep(self.seconds)
        rows = step.sample_rows_S
        last = step.rows.tokens[rows, step.rows.known[rows] - 1]
        tokens = ((last + 1) % 26).astype(np.int32)
        tops = {s: [(int(t), -0.25)] for s, t in enumerate(tokens)}
        return Result(tokens, np.full(len(tokens), -0.25, np.float32), 1e-4, tops)


def toy_live(seconds=0.0, **config):
    """A live engine, started, of a toy model; steps take `seconds`."""
    live = LiveEngine(InferenceConfig(pages=64, **config), "toy")
    live.built = Built(ToyExecutor(seconds), WallClock(), ToyTokenizer())
    return live.start()
