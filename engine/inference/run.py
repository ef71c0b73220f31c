"""The driver of serving runs: builds the workload and the engine, then steps until all is served.

Commands while it runs: `abort=id`, `fork=id`, `prompt=text` (or `tokens=[…]`) and `reset=True`.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.plot import Plot
from engine.core.run import Live
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.phases import PHASES, Phases, phases
from engine.inference.requests.request import Request, sampling
from engine.inference.workloads.workload import Source

LANES = ["align", "draft", "verify", "engine"]  # of a step, where one is shared out
PATIENCE = 0.02  # seconds between looks at the inbox while nothing runs


def run(config: InferenceConfig, live: Live) -> None:
    """Serve the workload of `config`; `live` is where events go and commands come from."""
    live.report(f"opening the model {config.model}", 0, 0)
    run_on(config, config.executor.build(config), live)


def run_on(
    config: InferenceConfig, built: Built, live: Live, plots: Sequence[Plot] = (), asked: str = ""
) -> None:
    """The same with the executor that `built` holds; `plots` are what else the caller draws, and
    `asked` the question that they answer."""
    facts = built.executor.facts
    source = Source(
        facts.vocab,
        facts.context,
        config.sampling,
        built.tokenizer.encode if built.tokenizer else None,
    )
    requests = config.workload.requests(source, config.seed)
    engine = Engine(config, built.executor, built.clock, live.emit, built.tokenizer, live.log.blobs)
    beside = phases(engine)
    lanes: dict[str, Any] = facts.header()
    if config.speculation.drafts:
        shared = LANES if config.speculation.pads else LANES[1:]
        lanes["lanes"] = [*shared, *facts.lanes]
    if asked:
        lanes["question"] = asked
    if beside is not None:
        lanes["lanes"] = list(PHASES)
    if facts.bytes_per_state:
        lanes["state_pages"] = 2 * config.max_running
    live.open(
        config,
        built.clock,
        plots=plots,
        pages=config.pages,
        page_size=config.page_size,
        host_pages=config.host_pages,
        requests=len(requests),
        roofs=list(facts.roofs),
        commands=["fork", "abort"],
        **lanes,
    )
    engine.prepare(requests)
    serve(engine, built, requests, live, beside)


def serve(
    engine: Engine, built: Built, requests: list[Request], live: Live, beside: Phases | None = None
) -> None:
    """Add `requests` as they arrive and step until every one of them is over."""
    clock, total = built.clock, len(requests)
    arriving = deque(sorted(requests, key=lambda r: r.arrival))
    while arriving or engine.busy:
        now = clock.now()
        while arriving and arriving[0].arrival <= now:
            offer(engine, arriving.popleft())
        for command in live.poll(now):
            obey(engine, built, command)
        if beside is not None:
            done = beside.step(arriving[0].arrival if arriving else np.inf)
        else:
            done = engine.step()
        if not done and not engine.busy and arriving:
            wake = arriving[0].arrival
            clock.wait_until(wake if clock.name == "virtual" else min(wake, now + PATIENCE))
        live.report("serving requests", total - len(arriving) - len(engine.requests), total)


def obey(engine: Engine, built: Built, command: dict[str, Any]) -> None:
    """Do what a person said; a command that makes no sense is ignored (it stays in the log)."""
    if "abort" in command:
        engine.abort(str(command["abort"]), "a person said so")
    elif "fork" in command:
        engine.fork(str(command["fork"]))
    elif "reset" in command:
        engine.reset()
    elif "prompt" in command or "tokens" in command:
        tokens, fields = command.get("tokens"), command.get("sampling") or {}
        try:
            if tokens is None:
                tokens = built.tokenizer.encode(str(command["prompt"])) if built.tokenizer else []
            wish = sampling(**fields) if fields else engine.config.sampling
            request = Request(np.asarray(tokens, np.int32), wish, arrival=built.clock.now())
            engine.add(request)
        except (BadInput, TypeError, ValueError, OverflowError):
            return


def offer(engine: Engine, request: Request) -> None:
    """Add a request; one that makes no sense is rejected, the rest go on."""
    try:
        engine.add(request)
    except BadInput as fault:
        engine.refuse(request, str(fault))
