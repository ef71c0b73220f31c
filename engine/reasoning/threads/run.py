"""The driver of reasoning runs: workers think side by side about a prompt until all are done.

With `config.requests`, as many ordinary requests are asked as the run begins and share its steps.

Commands while it runs: `fork=thread` or `fork=[thread, budget]`, `join=[parent, child]`,
`prune=thread` (or `kill`, of a request too), `say=[thread, text]`. One that cannot be done is
refused in words, and the threads go on.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Live
from engine.inference.engine import Engine
from engine.inference.requests.request import Request
from engine.inference.workloads.prompts import STARTS
from engine.reasoning.threads.budget import budget
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import LoadedModel, open_model
from engine.reasoning.threads.reasoner import Reasoner

NAMES = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")


def run(config: ReasoningConfig, live: Live) -> None:
    """Let the workers of `config` think; `live` is where events go and commands come from."""
    live.report("opening the model", 0, 0)
    think(config, open_model(config), live)


def think(config: ReasoningConfig, loaded: LoadedModel, live: Live) -> None:
    """The same with a model at hand."""
    clock = loaded.clock
    if config.keep_logits:
        _ = loaded.storage  # raises BadInput where there are no logits
    live.open(
        config,
        clock,
        pages=config.pages,
        page_size=config.page_size,
        **loaded.header(config.page_size),
        threads=list(NAMES[: config.workers]),
        commands=["fork", "kill", "say"],
    )
    engine, blobs = None, live.log.blobs
    if config.requests:
        serving, tokenizer = config.serving(), loaded.tokenizer
        engine = Engine(serving, loaded.executor, clock, live.emit, tokenizer, blobs)
    shared = engine if config.shared_steps else None
    reasoner = Reasoner(config, loaded, clock, live.emit, shared, blobs)
    reasoner.read(prompt_tokens(config, loaded))
    for name in NAMES[: config.workers]:
        attempt(reasoner, partial(reasoner.start, name))
    if engine is not None:
        for request in asked(config, loaded):
            engine.add(request)
    while reasoner.table.running or (engine is not None and engine.busy):
        _script(config, reasoner)
        for command in live.poll(clock.now()):
            attempt(reasoner, partial(obey, reasoner, command))
        if not reasoner.step() and engine is not None:
            engine.step()
        live.report("thinking", reasoner.number, max(config.budget, reasoner.number))
    if config.keep_logits:
        keep(reasoner, live, clock.now())


def prompt_tokens(config: ReasoningConfig, loaded: LoadedModel) -> list[int]:
    """The prompt in tokens; without a tokenizer, as many random ones as it has words."""
    return _tokens(config.prompt, config.seed, loaded)


def asked(config: ReasoningConfig, loaded: LoadedModel) -> list[Request]:
    """The ordinary requests, which may say as much as a thread may."""
    wish = update(config.sampling, {"max_tokens": config.budget})
    texts = [STARTS[number % len(STARTS)] for number in range(config.requests)]
    return [
        Request(np.array(_tokens(text, config.seed + 1 + number, loaded), np.int32), wish)
        for number, text in enumerate(texts)
    ]


def _tokens(text: str, seed: int, loaded: LoadedModel) -> list[int]:
    if loaded.tokenizer is not None:
        return loaded.tokenizer.encode(text)
    draw = np.random.default_rng(seed)
    count = max(2, len(text.split()))
    return [int(token) for token in draw.integers(0, loaded.config.vocab, count)]


def obey(reasoner: Reasoner, command: dict[str, Any]) -> None:
    """Do what a person said. Raises BadInput where it cannot be done."""
    table, engine = reasoner.table, reasoner.engine
    match command:
        case {"fork": [name, said]}:
            table.fork(str(name), budget(said))
        case {"fork": name}:
            table.fork(str(name))
        case {"join": [parent, child]}:
            table.join(str(parent), str(child))
        case {"prune": name} | {"kill": name} if engine and str(name) in engine.requests:
            engine.abort(str(name), "a person said so")
        case {"prune": name} | {"kill": name}:
            table.prune(str(name), "a person said so")
        case {"say": [name, text]}:
            reasoner.say(str(name), str(text))
        case _:
            raise BadInput(
                f"command {str(command)[:80]}: say fork=thread, fork=[thread, budget], "
                "join=[parent, child], prune=thread or say=[thread, text]"
            )


def _script(config: ReasoningConfig, reasoner: Reasoner) -> None:
    """What the config asks for at this step."""
    table, step, first = reasoner.table, reasoner.number, NAMES[0]
    if config.fork_at and step == config.fork_at:
        attempt(reasoner, lambda: table.fork(first))
    if config.join_at and step == config.join_at:
        attempt(reasoner, lambda: table.join(first, f"{first}.1"))
    if config.prune_at and step == config.prune_at:
        attempt(reasoner, lambda: table.prune(NAMES[config.workers - 1], "the plan said so"))


def attempt(reasoner: Reasoner, do: Callable[[], object], lane: str = "threads") -> None:
    """What cannot be done is told in `lane`; nobody stops for it."""
    try:
        do()
    except BadInput as fault:
        reasoner.emit(Mark(reasoner.clock.now(), lane, "refuse", str(fault)))


def keep(reasoner: Reasoner, live: Live, now: float) -> None:
    """Every token, what its writer saw, and the logits after it, as arrays beside the log.

    `block` and `index`: in which block each stands, and where; `blocks`: their names, UTF-8, a
    line each.
    """
    record = reasoner.table.record
    assert record is not None
    arrays = dict(record.seen()._asdict())
    arrays["tokens"] = np.array(record.tokens, np.int64)
    names = {
        name: number for number, name in enumerate(dict.fromkeys(b for b, _ in record.written))
    }
    arrays["blocks"] = np.frombuffer("\n".join(names).encode(), np.uint8)
    arrays["block"] = np.array([names[block] for block, _ in record.written], np.int64)
    arrays["index"] = np.array([index for _, index in record.written], np.int64)
    arrays["at"] = np.concatenate([at for at, _ in reasoner.kept])
    arrays["logits"] = np.concatenate([logits for _, logits in reasoner.kept])
    for name, array in arrays.items():
        live.keep(now, f"kept/{name}", array)
