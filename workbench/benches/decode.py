"""Decode throughput: this engine, transformers and the peers installed beside it, and the limits.

In float32, bfloat16 and weights of 8 and 4 bits (transformers: floats only), the latter beside
activations in floats and, as the peers have them, in 8 bits, too. Engines and the bandwidth probe
take turns in one process, so that a busy minute falls on all of them; figures are
medians over the rounds.
"""

from collections.abc import Callable
from math import inf
from statistics import median
from typing import Any

import torch

from engine.core.log import Log
from engine.hardware import probes
from engine.models.footprint import parameter_count
from workbench.benches import _peers
from workbench.benches._decode_work import CODES, Answered, Ask, Ours, Theirs, asks

NAME = "decode"
ABOUT = "tokens a second against transformers and the limit of this machine's memory"
MARKS = {"float32": "", "bfloat16": "-bf16", "int8": "-int8", "int4": "-int4"}
TRANSFORMERS = "transformers"
INTEGERS = "workbench, int8 activations"
PROBE = 256 * 2**20  # bytes: well past any cache
Row = dict[str, Any]


def run(full: bool, say: Callable[[str], None]) -> list[Row]:
    """Rows batch-1 and batch-16 by number format, recording, then the peers' of the same names."""
    torch.set_num_threads(probes.threads())
    rounds, prompt, tokens = (7, 128, 256) if full else (3, 64, 96)
    rows = []
    one, many = asks(1, (prompt, prompt), (tokens, tokens)), asks(16, (16, prompt), (8, tokens))
    wanted: dict[str, dict[str, list[Ask]]] = {}
    said: dict[str, Answered] = {}
    for dtype, mark in MARKS.items():
        say(f"making 125 million {dtype} weights")
        ours = Ours(dtype)
        others: dict[str, Ours | Theirs] = (
            {INTEGERS: Ours(dtype, "int8")} if dtype in CODES else {TRANSFORMERS: Theirs(dtype)}
        )
        wanted[dtype] = {f"batch-1{mark}": one, f"batch-16{mark}": many}
        for name, requests in wanted[dtype].items():
            say(name)
            said[name] = ours.answer(requests)
            rows += _compare(name, dtype, ours, others, requests, rounds)
        if dtype == "float32":
            say("with and without recording")
            rows.append(_recording(ours, many, 2 * rounds + 1))
    bases = {r["name"]: r["tokens_per_second"] for r in rows if r["engine"] == TRANSFORMERS}
    for peer in _peers.names():
        say(f"peer {peer}")
        for row, answered in _peers.measure(peer, wanted, bases, rounds):
            if answered is not None:
                row["same_tokens"] = match(said[row["name"]], answered)
            rows.append(row)
    _beside_the_best(rows)
    say(about_limit(rows))
    return rows


def _beside_the_best(rows: list[Row]) -> None:
    """Ours over the fastest of the others at the same requests and bits."""
    for row in rows:
        same = [r for r in rows if r["name"] == row["name"] and "tokens_per_second" in r]
        own = "workbench", INTEGERS
        others = [r["tokens_per_second"] for r in same if r["engine"] not in own]
        if row["engine"] in own and others and "tokens_per_second" in row:
            row["ratio_to_best_peer"] = row["tokens_per_second"] / max(others)


def _compare(
    name: str,
    dtype: str,
    ours: Ours,
    others: dict[str, Ours | Theirs],
    wanted: list[Ask],
    rounds: int,
) -> list[Row]:
    """A row for each engine: the same requests, in turns, with the probe between."""
    short = [Ask(ask.prompt, 4) for ask in wanted]
    engines: dict[str, Ours | Theirs] = {"workbench": ours, **others}
    for engine in engines.values():
        engine.answer(short)
    read, peak = [], []
    found: dict[str, list[Answered]] = {engine: [] for engine in engines}
    for _ in range(rounds):
        read += probes.read_rates(PROBE, probes.threads(), 3)
        peak += probes.multiply_add_rates(probes.threads(), 1)
        for each, engine in engines.items():
            found[each].append(engine.answer(wanted))
    alone = len(wanted) == 1
    rates = {engine: median(a.rate(alone) for a in list_) for engine, list_ in found.items()}
    # The peak of floats says nothing of integers: beside them reading alone is the limit.
    limits = {
        engine: _limit(
            ours, wanted, found["workbench"][0], median(read),
            inf if engine == INTEGERS else median(peak), alone,
        )
        for engine in engines
    }  # fmt: skip
    shares = [match(found["workbench"][0], found[other][0]) for other in others]
    rows = []
    for engine, rate in rates.items():
        row = {
            "name": name,
            "engine": engine,
            "dtype": dtype,
            "tokens_per_second": rate,
            "fraction_of_limit": rate / limits[engine],
            "limit_tokens_per_second": limits[engine],
            "weight_bytes": ours.weight_bytes(),
            "read_bandwidth": median(read),
            "same_tokens": min(shares),
        }
        if TRANSFORMERS in rates:
            row["ratio_to_transformers"] = rate / rates[TRANSFORMERS]
        rows.append(row)
    return rows


def _limit(
    ours: Ours, wanted: list[Ask], answered: Answered, read: float, peak: float, alone: bool
) -> float:
    """Tokens a second if every step only read weights and cache, and every product ran at peak."""
    config, weights = ours.model.config, ours.weight_bytes()
    token = ours.model.spec.bytes_per_token()
    cache = sum(token * sum(range(len(a.prompt), len(a.prompt) + a.tokens)) for a in wanted)
    steps, tokens = answered.steps, sum(a.tokens for a in wanted)
    if alone:  # the first step is prefill and not counted
        steps, tokens = tokens - 1, tokens - 1
        return tokens / ((steps * weights + cache) / read)
    head = config.vocab * config.hidden
    numbers = parameter_count(config) - head  # an embedding is looked up
    computed = sum(len(a.prompt) + a.tokens for a in wanted)
    flops = 2 * (numbers - head) * computed + 2 * head * tokens
    return tokens / max((steps * weights + cache) / read, flops / peak)


def match(ours: Answered, theirs: Answered) -> float:
    """The share of equal tokens: near-ties of random weights may part, in half precision often,
    and codes of few bits are rounded by each engine in its own way."""
    pairs = [
        x == y
        for a, b in zip(ours.tokens, theirs.tokens, strict=True)
        for x, y in zip(a, b, strict=True)
    ]
    return sum(pairs) / len(pairs)


def _recording(ours: Ours, wanted: list[Ask], rounds: int) -> Row:
    """How much longer the same requests take when every event goes to a log."""
    silent, told = [], []
    for _ in range(rounds):
        silent.append(ours.answer(wanted).seconds)
        told.append(ours.answer(wanted, Log().emit).seconds)
    cost = median(b / a for a, b in zip(silent, told, strict=True)) - 1
    return {
        "name": "recording",
        "engine": "workbench",
        "dtype": "float32",
        "cost": cost,
        "limit": 0.03,
        "holds": cost < 0.03,
    }


def table(rows: list[Row]) -> list[tuple[str, ...]]:
    """Head and rows for a person; what was not measured stays empty."""
    head = (
        "", "engine", "tokens/s", "× transformers", "× best peer", "MB of weights", "of the limit",
        "same tokens",
    )  # fmt: skip
    return [head, *(_cells(row) for row in rows)]


def _cells(row: Row) -> tuple[str, ...]:
    name = row["name"], row["engine"]
    if "missing" in row:
        return (*name, row["missing"], "", "", "", "", "")
    if "cost" in row:
        cost = f"{row['cost']:.1%} (at most {row['limit']:.0%})"
        return (*name, "", "", "", "", cost, "")
    ratios = (_number(row, part, ".2f") for part in ("ratio_to_transformers", "ratio_to_best_peer"))
    size = f"{row['weight_bytes'] / 1e6:.0f}" if "weight_bytes" in row else ""
    shares = (_number(row, part, ".0%") for part in ("fraction_of_limit", "same_tokens"))
    return (*name, f"{row['tokens_per_second']:.1f}", *ratios, size, *shares)


def about_limit(rows: list[Row]) -> str:
    """What the limit is and what batch 16 means, with the bandwidth read in this run."""
    read = median([row["read_bandwidth"] for row in rows if "read_bandwidth" in row])
    return (
        f"limit: weights and cache at {read / 1e9:.1f} GB/s read here in the same run (batch 16: "
        "or the products at this processor's peak of floats, whichever is slower); batch 16: 16 "
        "requests at once, lengths evenly spread over their logarithm, prefill included; beside "
        "weights of 8 and 4 bits llama.cpp, ONNX Runtime's builder and OpenVINO (groups of 32) "
        "quantise activations to 8 bits by default"
    )


def _number(row: Row, name: str, form: str) -> str:
    return format(row[name], form) if name in row else ""
