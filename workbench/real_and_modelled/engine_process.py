"""Engine process: a real serving engine in a process of its own, asked and heard over a pipe.

Messages are JSON: a request's number, prompt and answer length one way; its first token and its end
the other, with the seconds of the clock that all processes of a machine share. Numbers, no objects.
"""

import json
import multiprocessing
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from engine.core.config import from_dict, to_dict
from engine.core.events import AnyEvent, Branch, Token
from engine.core.log import Log
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.requests.request import Request
from engine.inference.workloads.workload import Source
from workbench.real_and_modelled.steps_taken import Taken, steps_taken

FIRST, ENDED, TAKEN, READY, FORGET = "first", "ended", "taken", "ready", "forget"
START = 120.0  # seconds a process has to load its model


def message(**fields: Any) -> bytes:
    """A message as it goes over a pipe."""
    return json.dumps(fields).encode()


def heard(pipes: Sequence[Connection], seconds: float | None) -> list[Connection]:
    """Those of `pipes` with something to receive, after `seconds` at most; None: however long.

    `Connection.poll` and `wait` round what they wait up to a millisecond.
    """
    return select.select(pipes, (), (), seconds)[0]


class EngineProcess:
    """The asking side. `send` and `receive` messages; `pipe` can be waited for."""

    def __init__(self, config: InferenceConfig, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        given = to_dict(config), threads, other
        self.process = context.Process(target=serve, args=given, daemon=True)
        self.process.start()
        other.close()

    def ready(self) -> None:
        """Wait until its model is loaded. Raises TimeoutError."""
        if not self.pipe.poll(START) or self.receive()["what"] != READY:
            raise TimeoutError(f"an engine's process did not start within {START:.0f} s")

    def send(self, said: bytes) -> None:
        """Tell it to `add` a request, to `forget` what it has cached and the steps it has taken, to
        say what it has `taken`."""
        self.pipe.send_bytes(said)

    def receive(self) -> dict[str, Any]:
        """Its next message; waits for it. Raises EOFError where it has ended."""
        found: dict[str, Any] = json.loads(self.pipe.recv_bytes())
        return found

    def taken(self) -> list[Taken]:
        """The steps that it has taken since it was told to forget."""
        self.send(message(what=TAKEN))
        return [
            Taken(np.array(new), np.array(context), rows, seconds)
            for new, context, rows, seconds in self.receive()["steps"]
        ]

    def stop(self) -> None:
        """Let it end."""
        self.pipe.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextmanager
def engines(config: InferenceConfig, count: int) -> Iterator[list[EngineProcess]]:
    """`count` of them, which share the machine's cores evenly; ended with the block."""
    threads = max(1, (os.cpu_count() or 1) // count)
    found = [EngineProcess(config, threads) for _ in range(count)]
    try:
        for one in found:
            one.ready()
        yield found
    finally:
        for one in found:
            one.stop()


def serve(settings: dict[str, Any], threads: int, pipe: Connection) -> None:
    """The process itself: steps while there is work, and hears what it is asked in between."""
    import numba
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks is interrupted, and closes the pipe
    torch.set_num_threads(threads)
    numba.set_num_threads(threads)
    config = from_dict(InferenceConfig, settings)
    built = config.executor.build(config)
    log, begun = Log(), set[str]()

    def say(what: str, **more: Any) -> None:
        pipe.send_bytes(message(what=what, at=time.monotonic(), **more))

    def hear(event: AnyEvent) -> None:
        log.emit(event)
        if type(event) is Token and event.thread not in begun:
            begun.add(event.thread)
            say(FIRST, number=int(event.thread[1:]))
        elif type(event) is Branch and event.state == "finished":
            begun.discard(event.thread)
            say(ENDED, number=int(event.thread[1:]))

    engine = Engine(config, built.executor, built.clock, hear, built.tokenizer)
    source = Source(built.executor.facts.vocab, built.executor.facts.context, config.sampling)
    say(READY)
    try:
        while True:
            while heard([pipe], 0 if engine.busy else None):
                asked = json.loads(pipe.recv_bytes())
                if asked["what"] == TAKEN:
                    say(TAKEN, steps=[_numbers(step) for step in steps_taken(log)])
                    continue
                if asked["what"] == FORGET:
                    log.events.clear()
                    engine.reset()
                    continue
                prompt = np.array(asked["prompt"], np.int32)
                request: Request = source.request(prompt, asked["answer"], built.clock.now())
                request.id = f"r{asked['number']}"
                engine.add(request)
            engine.step()
    except (EOFError, OSError):  # nobody asks any more
        return


def _numbers(step: Taken) -> tuple[list[int], list[int], int, float]:
    return step.new_B.tolist(), step.context_B.tolist(), step.rows, step.seconds
