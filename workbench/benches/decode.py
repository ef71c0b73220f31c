"""Decode throughput: this engine, transformers and the peers installed beside it, and the limits.

Engines and the bandwidth probe take turns in one process, so that a busy minute falls on all of
them; figures are medians over the rounds.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from engine.core.log import Log
from engine.hardware import probes
from workbench.benches import _peers
from workbench.benches._decode_work import Answered, Ask, Ours, Theirs, asks

NAME = "decode"
ABOUT = "tokens a second against transformers and the limit of this machine's memory"
PROBE = 256 * 2**20  # bytes: well past any cache
Row = dict[str, Any]


def run(full: bool, say: Callable[[str], None]) -> list[Row]:
    """Rows batch-1, batch-16 (float32), batch-1-bf16, batch-16-bf16, recording, then peers."""
    torch.set_num_threads(probes.threads())
    rounds, prompt, tokens = (7, 128, 256) if full else (3, 64, 96)
    rows = []
    for dtype, mark in (("float32", ""), ("bfloat16", "-bf16")):
        say(f"making 125 million {dtype} weights")
        ours, theirs = Ours(dtype), Theirs(dtype)
        one = asks(1, (prompt, prompt), (tokens, tokens))
        many = asks(16, (16, prompt), (8, tokens))
        say(f"batch 1, {dtype}")
        rows += _compare(f"batch-1{mark}", dtype, ours, theirs, one, rounds)
        say(f"batch 16, {dtype}")
        rows += _compare(f"batch-16{mark}", dtype, ours, theirs, many, rounds)
        if dtype == "float32":
            say("with and without recording")
            rows.append(_recording(ours, many, 2 * rounds + 1))
    wanted = {"batch-1": one, "batch-16": many}
    theirs = {r["name"]: r["tokens_per_second"] for r in rows if r["engine"] == "transformers"}
    for name in _peers.names():
        say(f"peer {name}")
        rows += _peers.measure(name, wanted, theirs, rounds)
    say(about_limit(rows))
    return rows


def _compare(
    name: str, dtype: str, ours: Ours, theirs: Theirs, wanted: list[Ask], rounds: int
) -> list[Row]:
    """A row for each engine: the same requests, in turns, with the probe between."""
    short = [Ask(ask.prompt, 4) for ask in wanted]
    ours.answer(short)
    theirs.answer(short)
    read, peak = [], []
    found: dict[str, list[Answered]] = {"workbench": [], "transformers": []}
    for _ in range(rounds):
        read += probes.read_rates(PROBE, probes.threads(), 3)
        peak += probes.multiply_add_rates(probes.threads(), 1)
        found["workbench"].append(ours.answer(wanted))
        found["transformers"].append(theirs.answer(wanted))
    alone = len(wanted) == 1
    rates = {engine: median(a.rate(alone) for a in list_) for engine, list_ in found.items()}
    limit = _limit(ours, wanted, found["workbench"][0], median(read), median(peak), alone)
    same = _match(found["workbench"][0], found["transformers"][0])
    return [
        {
            "name": name,
            "engine": engine,
            "dtype": dtype,
            "tokens_per_second": rate,
            "ratio_to_transformers": rate / rates["transformers"],
            "fraction_of_limit": rate / limit,
            "limit_tokens_per_second": limit,
            "read_bandwidth": median(read),
            "same_tokens": same,
        }
        for engine, rate in rates.items()
    ]


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
    numbers = weights / (4 if ours.config.dtype == "float32" else 2)
    head = config.vocab * config.hidden
    computed = sum(len(a.prompt) + a.tokens for a in wanted)
    flops = 2 * (numbers - head) * computed + 2 * head * tokens
    return tokens / max((steps * weights + cache) / read, flops / peak)


def _match(ours: Answered, theirs: Answered) -> float:
    """The share of equal tokens: near-ties of random weights may part, in half precision often."""
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
    head = ("", "engine", "tokens/s", "× transformers", "of the limit", "same tokens")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: Row) -> tuple[str, ...]:
    name = row["name"], row["engine"]
    if "missing" in row:
        return (*name, row["missing"], "", "", "")
    if "cost" in row:
        return (*name, "", "", f"{row['cost']:.1%} (at most {row['limit']:.0%})", "")
    rates = f"{row['tokens_per_second']:.1f}", f"{row['ratio_to_transformers']:.2f}"
    return (*name, *rates, _percent(row, "fraction_of_limit"), _percent(row, "same_tokens"))


def about_limit(rows: list[Row]) -> str:
    """What the limit is and what batch 16 means, with the bandwidth read in this run."""
    read = median([row["read_bandwidth"] for row in rows if "read_bandwidth" in row])
    return (
        f"limit: weights and cache at {read / 1e9:.1f} GB/s read here in the same run (batch 16: "
        "or the products at this processor's peak, whichever is slower); batch 16: 16 requests at "
        "once, lengths evenly spread over their logarithm, prefill included"
    )


def _percent(row: Row, name: str) -> str:
    return format(row[name], ".0%") if name in row else ""
