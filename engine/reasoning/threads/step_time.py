"""What a step of several threads costs beside a step of plain requests, on this machine.

All go through their whole loop (plan, forward, sampling, events), on the same weights, in turns of
a few steps each, at views and contexts of equal length: threads alone, requests alone, and both
sharing their steps.
"""

from statistics import median
from time import perf_counter

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import update
from engine.core.events import AnyEvent
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Executor
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, Sampling
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import LoadedModel, loaded_model_of, open_model
from engine.reasoning.threads.reasoner import Reasoner

TURN = 8  # steps of one kind before the other's
WARM = 2  # more of each, not counted
CONTEXT = 48  # tokens of a request's prompt where steps are shared


def step_times(
    config: ReasoningConfig, requests: int, turns: int
) -> tuple[list[float], list[float]]:
    """Seconds a step: of the config's workers, and of so many plain requests (median a turn)."""
    total = (turns + 1) * (TURN + WARM)
    config = update(
        config,
        {"budget": total + 1, "header": "", "sampling.ignore_eos": True, "pages": 1024},
    )
    loaded = open_model(config)
    plain = InferenceConfig(pages=1024, page_size=config.page_size)
    executor = executor_for(plain, loaded.model, loaded.name)
    wish = update(config.sampling, {"max_tokens": 4 * (TURN + WARM)})  # both draw alike
    events: list[AnyEvent] = []
    threads = _threads(config, loaded, events)
    _engine(plain, executor, requests, 32, wish, events).step()  # compiled before it is timed
    ours: list[float] = []
    theirs: list[float] = []
    longest = loaded.config.max_positions - config.workers * (TURN + WARM)
    for turn in range(turns):
        if (context := _seen(threads)) > longest:  # no room for another turn: begin anew
            threads = _threads(config, loaded, events)
            context = _seen(threads)
        middle = context + (config.workers - 1) * (TURN + WARM) // 2
        engine = _engine(plain, executor, requests, middle, wish, events)
        both = [(threads.step, ours), (engine.step, theirs)]
        for step, times in both if turn % 2 else both[::-1]:
            took = []
            for _ in range(WARM + TURN):
                began = perf_counter()
                step()
                took.append(perf_counter() - began)
            times.append(median(took[WARM:]))
    return ours, theirs


def shared_times(
    config: ReasoningConfig, requests: int, turns: int
) -> tuple[list[float], list[float]]:
    """Seconds a step (median a turn): threads and requests in one, and one after the other.

    A fault of the config is that of shared steps alone.
    """
    config = update(config, {"budget": 4 * TURN, "header": "", "sampling.ignore_eos": True,
                             "requests": 0, "pages": 1024})  # fmt: skip
    wish = update(config.sampling, {"max_tokens": 4 * TURN})
    loaded, plain = open_model(config), config.serving()
    other = loaded_model_of(config, loaded.model, loaded.name, loaded.tokenizer)
    executor = executor_for(plain, loaded.model, loaded.name)
    events: list[AnyEvent] = []
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(turns + 1):
        both = _engine(plain, loaded.executor, requests, CONTEXT, wish, events)
        sharing = _threads(config, loaded, events, both)
        threads = _threads(update(config, {"fault": "none"}), other, events)
        engine = _engine(plain, executor, requests, CONTEXT, wish, events)
        shared: list[float] = []
        apart: list[float] = []
        for step in range(WARM + TURN):
            order = [(shared, (sharing.step,)), (apart, (threads.step, engine.step))]
            if not config.shared_steps:
                order[0] = shared, (threads.step, engine.step)
            for times, steps in order if (turn + step) % 2 else order[::-1]:
                began = perf_counter()
                for one in steps:
                    one()
                times.append(perf_counter() - began)
        if turn:  # in the first everything is compiled
            ours.append(median(shared[WARM:]))
            theirs.append(median(apart[WARM:]))
    return ours, theirs


def _seen(threads: Reasoner) -> int:
    """Positions that a running thread sees."""
    return threads.table.view(threads.table.running[0])[-1].end


def _threads(
    config: ReasoningConfig,
    loaded: LoadedModel,
    events: list[AnyEvent],
    engine: Engine | None = None,
) -> Reasoner:
    made = Reasoner(config, loaded, WallClock(), events.append, engine)
    vocab = loaded.config.vocab
    made.read(np.random.default_rng(config.seed).integers(0, vocab, 32).tolist())
    for worker in range(config.workers):
        made.start(f"worker{worker}")
    for _ in range(WARM):
        made.step()
    return made


def _engine(
    config: InferenceConfig, executor: Executor, requests: int, context: int, wish: Sampling,
    events: list[AnyEvent],
) -> Engine:  # fmt: skip
    """Requests that have `context` tokens and decode, drawing as `wish` says."""
    engine = Engine(config, executor, WallClock(), events.append)
    draw = np.random.default_rng(config.seed)
    for _ in range(requests):
        prompt = draw.integers(0, executor.facts.vocab, context).astype(np.int32)
        engine.add(Request(prompt, wish))
    while not engine.step() or engine.scheduler.prefill.pending:
        pass
    return engine
