"""Decode steps of the engine on a GPU, scheduler and sampling included: recorded passes (CUDA
graphs) beside passes launched kernel by kernel, and the time that reading weights and cache takes.
"""

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, sampling
from engine.models.config import ModelConfig
from engine.models.footprint import parameter_count
from engine.models.loading.find import find
from engine.models.loading.random_weights import SPREAD, RandomWeights
from engine.models.model import Model

MODEL = "llama-3.1-8b"
ROWS = (1, 16, 64)
PROMPT, STEPS = 1000, 32
STEP_TOKENS = 8192  # of prompts and answers at once
PAGE = 16
Row = dict[str, Any]


class Drawn(RandomWeights):
    """Random matrices made where they are used: a processor takes minutes for billions."""

    def __init__(self, config: ModelConfig, dtype: str, device: str) -> None:
        super().__init__(config, dtype=dtype)
        self.device = device

    def __getitem__(self, name: str) -> Tensor:
        shape = self.shapes[name]
        if len(shape) == 1:
            return super().__getitem__(name)
        return torch.randn(shape, dtype=self.dtype, device=self.device) * SPREAD


def rows(bandwidth: float, say: Callable[[str], None]) -> list[Row]:
    """A row for each number of requests at once; `bandwidth`: bytes read a second."""
    say(f"making weights of the shape of {MODEL}")
    config = find(MODEL).config
    model = Model(config, Drawn(config, "bfloat16", "cuda"), "bfloat16", device="cuda")
    return [row(model, count, PROMPT, STEPS, bandwidth, say) for count in ROWS]


def row(
    model: Model, count: int, prompt: int, steps: int, bandwidth: float,
    say: Callable[[str], None],
) -> Row:  # fmt: skip
    """Steps of `count` requests whose prompts have `prompt` tokens."""
    name = f"decode {MODEL} {count} × {prompt:,} tokens"
    say(name)
    recorded, launched = (seconds(model, count, prompt, steps, how) for how in (True, False))
    limit = read(model, count, prompt + steps / 2) / bandwidth
    return {
        "name": name,
        "what": "a step of the engine, bfloat16",
        "seconds": recorded,
        "limit_seconds": limit,
        "fraction_of_limit": limit / recorded,
        "ratio": launched / recorded,
        "ratio_to": "passes not recorded",
        "holds_to": "",
    }


def read(model: Model, count: int, context: float) -> float:
    """Bytes a step must read: every weight but the embedding, of which it looks rows up, and the
    cache of `context` tokens of each request."""
    config = model.config
    looked_up = 0 if config.tied else config.vocab * config.hidden
    weights = (parameter_count(config) - looked_up) * model.dtype.itemsize
    return float(weights + count * context * model.spec.bytes_per_token())


def seconds(model: Model, count: int, prompt: int, steps: int, recorded: bool) -> float:
    """From one step's end to the next one's, in the median, of steps that only decode."""
    behind = -(-count * prompt // STEP_TOKENS)  # steps by which the last prompt is over
    answer = steps + behind
    pages = count * (-(-(prompt + answer) // PAGE) + 1)
    config = InferenceConfig(
        page_size=PAGE, pages=pages, max_running=count, step_tokens=STEP_TOKENS, dtype="bfloat16",
        prefix_sharing=False,
    )  # fmt: skip
    executor = executor_for(config, model, MODEL)
    if not recorded:
        executor.graphs = None
    engine = Engine(config, executor, WallClock(), lambda event: None)
    draw = np.random.default_rng(0)
    told: list[str] = []
    taken: list[float] = []

    def hear(request: Request, token: int, text: str, logprob: float) -> None:
        told.append(request.id)

    for wanted in (4 + behind, answer):  # the first few compile and record
        wish = sampling(max_tokens=wanted, ignore_eos=True)
        for _ in range(count):
            tokens = draw.integers(0, model.config.vocab, prompt).astype(np.int32)
            engine.add(Request(tokens, wish, on_token=hear))
        taken = list(_decodes(engine, told, count))
    return median(taken)


def _decodes(engine: Engine, told: list[str], count: int) -> Iterator[float]:
    """Seconds of each step that told a token of every request, each of which had one before.

    `told`: whose tokens came, in their order.
    """
    begun: set[str] = set()
    last = perf_counter()
    while engine.busy:
        told.clear()
        engine.step()
        now = perf_counter()
        if len(told) == count == len(begun):
            yield now - last
        begun.update(told)
        last = now
