"""Speculation: what drafts are worth on this machine, by batch, and against transformers' own.

The shipped pair on text that a person wrote, from one request to many, each beside plain decoding
of the same requests; and a target of 125 million weights with its draft beside transformers'
assisted generation, with the same two models and as many drafts. All take turns in one process;
a figure is the best of its rounds, of the wall's time and of the process's own.
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from engine.core.clock import WallClock
from engine.core.events import AnyEvent
from engine.hardware import probes
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.executors.tensors.real_executor import build
from engine.inference.requests.request import Request, sampling
from engine.inference.workloads.prompts import STARTS
from workbench.benches import _drafted_work
from workbench.benches._decode_work import Ask, asks

NAME = "speculation"
ABOUT = "tokens a second with drafts: the shipped pair by batch, 125 million beside transformers"
DRAFTS = 3  # with the token before them a row of four, which is what the kernels' tiles take
GOAL = 1.5  # times plain decoding, one request
Row = dict[str, Any]


def run(full: bool, say: Callable[[str], None]) -> list[Row]:
    """Rows of the shipped pair by batch, then of the large target by engine."""
    torch.set_num_threads(probes.threads())
    rounds, tokens = (15, 128) if full else (5, 64)
    plain, drafted = (_built(kind) for kind in ("none", "draft_model"))
    rows = []
    for batch in (1, 2, 4, 8, 16, 32) if full else (1, 4, 16):
        say(f"the shipped pair, {batch} at once")
        rows.append(_pair(plain, drafted, batch, tokens, rounds))
    say("making 125 million weights")
    return rows + _beside_transformers(7 if full else 3, 128 if full else 48, say)


def table(rows: list[Row]) -> list[tuple[str, ...]]:
    """Head and rows."""
    head = ("requests", "tokens/s", "plain", "times", "by cpu", "tokens a step", "limit")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: Row) -> tuple[str, ...]:
    numbers = f"{row['rate']:.0f}", f"{row['plain']:.0f}", f"{row['times']:.2f}×"
    cpu = f"{row['cpu_times']:.2f}×" if "cpu_times" in row else ""
    limit = f"{row['limit']:.1f}×" if row.get("limit") else ""
    return (row["name"], *numbers, cpu, f"{row['tokens_a_step']:.2f}", limit)


def _built(kind: str) -> tuple[InferenceConfig, Built]:
    how = {"kind": kind, "tokens": DRAFTS} if kind != "none" else kind
    config = InferenceConfig(speculation=how, pages=2048, prefix_sharing=False)
    return config, build(config)


def _pair(
    plain: tuple[InferenceConfig, Built], drafted: tuple[InferenceConfig, Built], batch: int,
    tokens: int, rounds: int,
) -> Row:  # fmt: skip
    """Plain decoding and drafts in turns: the best of each."""
    prompts = [STARTS[place % len(STARTS)] for place in range(max(batch, len(STARTS)))]
    groups = [prompts[at : at + batch] for at in range(0, len(prompts), batch)]
    best: dict[str, list[float]] = {"plain": [0.0, 0.0], "drafted": [0.0, 0.0]}
    steps, said = 0, {}
    for group in groups:
        took: dict[str, list[tuple[float, float]]] = {"plain": [], "drafted": []}
        for _ in range(rounds + 1):  # the first warms up
            for name, held in (("plain", plain), ("drafted", drafted)):
                *seconds, count, said[name] = _serve(*held, group, tokens)
                took[name].append((seconds[0], seconds[1]))
        assert said["plain"] == said["drafted"], "drafts changed an answer"
        steps += count
        for name, each in took.items():
            for at, column in enumerate(zip(*each[1:], strict=True)):
                best[name][at] += min(column)
    decoded = len(prompts) * (tokens - 1)
    times = best["plain"][0] / best["drafted"][0]
    limit = GOAL if batch == 1 else 0.0
    return {
        "name": f"pair-{batch}",
        "rate": decoded / best["drafted"][0],
        "plain": decoded / best["plain"][0],
        "times": times,
        "cpu_times": best["plain"][1] / best["drafted"][1],
        "tokens_a_step": decoded / (steps * batch),
        "limit": limit,
        "holds": times >= limit,
    }


def _serve(
    config: InferenceConfig, built: Built, prompts: list[str], tokens: int
) -> tuple[float, float, int, list[list[int]]]:
    """Wall and process seconds of the steps after the prompts', their number, and the answers."""
    events: list[AnyEvent] = []
    engine = Engine(config, built.executor, WallClock(), events.append, built.tokenizer)
    assert built.tokenizer is not None
    requests = [
        Request(
            np.array(built.tokenizer.encode(text), np.int32),
            sampling(max_tokens=tokens, ignore_eos=True),
        )
        for text in prompts
    ]
    for request in requests:
        engine.add(request)
    engine.step()
    while len(engine.scheduler.queue) or len(engine.scheduler.prefill):
        engine.step()
    before, began, used = engine.number, perf_counter(), process_time()
    engine.run()
    seconds = perf_counter() - began, process_time() - used
    return (*seconds, engine.number - before, [each.generated.tolist() for each in requests])


def _beside_transformers(rounds: int, tokens: int, say: Callable[[str], None]) -> list[Row]:
    """Ours and theirs, each plain and with as many drafts of the same model."""
    weights = _drafted_work.pair()
    models = _drafted_work.models(weights)
    engines = {
        f"{name}-{kind}": made(held, drafts)
        for name, made, held in (
            ("workbench", _drafted_work.Drafted, models),
            ("transformers", _drafted_work.Assisted, weights),
        )
        for kind, drafts in (("plain", 0), ("drafts", DRAFTS))
    }
    [ask] = asks(1, (64, 64), (tokens, tokens))
    took: dict[str, list[float]] = {name: [] for name in engines}
    steps = {}
    for engine in engines.values():
        engine.answer([Ask(ask.prompt, 8)])
    for _ in range(rounds):
        for name, engine in engines.items():
            say(name)
            found = engine.answer([ask])
            took[name].append(found.seconds)
            steps[name] = found.steps
    rates = {name: tokens / min(seconds) for name, seconds in took.items()}
    rows = []
    for name in ("workbench", "transformers"):
        rate, plain = rates[f"{name}-drafts"], rates[f"{name}-plain"]
        row = {"name": f"125m-{name}", "rate": rate, "plain": plain, "times": rate / plain}
        row["tokens_a_step"] = tokens / steps[f"{name}-drafts"]
        rows.append(row)
    ahead = rates["workbench-drafts"] / rates["transformers-drafts"]
    rows[0]["times_transformers"] = ahead
    say(f"drafts here are {ahead:.2f} times transformers' assisted generation")
    return rows
