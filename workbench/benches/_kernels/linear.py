"""Linear attention: gated forms beside softmax attention; local linear beside its naive form."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.kernels import local_linear_attention as local
from engine.kernels.linear_attention import OPERATOR, work
from engine.kernels.linear_attention.cases import case
from engine.kernels.linear_attention.run import crossover
from engine.kernels.local_linear_attention.allocated import peak_bytes
from engine.kernels.local_linear_attention.cases import made
from engine.kernels.operator import operators

HEADS, WIDTH = 4, 64
ROUNDS = 5  # turns of each, and more of short ones: the least disturbed counts
SHORT = 16384  # tokens that all turns of a length come to, at least
QUADRATIC = 4096  # tokens up to which the parallel form takes part
SOFTMAX = "torch softmax attention"
Row = dict[str, Any]


def rows(full: bool, say: Callable[[str], None]) -> list[Row]:
    """Each form at each length, exponents and crossovers; then local linear attention.

    Times are the least disturbed of their turns; `limit_seconds` is what the form's flops take as
    one float32 matrix product of torch, measured in turns with it.
    """
    lengths = [256, 512, 1024, 2048, 4096, 8192] + ([16384, 32768] if full else [])
    taken: dict[str, dict[int, float]] = {}
    found: list[Row] = []
    for tokens in lengths:
        say(f"gated linear attention: {HEADS} heads of {WIDTH}, {tokens} tokens")
        best = {
            name: min(times) for name, times in _in_turns(_calls(tokens), SHORT // tokens).items()
        }
        rate = 2 * 1024**3 / best.pop("product")
        for name, seconds in best.items():
            taken.setdefault(name, {})[tokens] = seconds
        found += [_row(name, tokens, best, rate) for name in best if name in OPERATOR.variants()]
    found += [_growth(name, times) for name, times in taken.items()]
    found += _crossings(taken)
    say("gated linear attention: gradients")
    found.append(_backward())
    say("local linear attention")
    return found + _local()


def _calls(tokens: int) -> dict[str, Callable[[], Any]]:
    """Every form, softmax attention by torch and by this library, and a matrix product."""
    given = case(1, HEADS, tokens, WIDTH, WIDTH).make(0, torch.float32)
    q, k, v = (given[name] for name in OPERATOR.inputs[:3])
    a = torch.randn(1024, 1024)
    calls: dict[str, Callable[[], Any]] = {
        name: lambda variant=variant: variant.call(**given)
        for name, variant in OPERATOR.variants().items()
        if variant.device == "cpu" and (tokens <= QUADRATIC or "parallel" not in name)
    }
    calls[SOFTMAX] = lambda: scaled_dot_product_attention(q, k, v, is_causal=True)
    softmax = operators().get("attention")
    if softmax is not None:
        from engine.kernels.attention.cases import case as ragged

        packed = ragged("", (tokens,), HEADS, HEADS, WIDTH, causal=True).make(0, torch.float32)
        calls["our softmax attention"] = lambda: softmax(**packed)
    return {**calls, "product": lambda: a @ a}


def _in_turns(calls: dict[str, Callable[[], Any]], turns: int = 0) -> dict[str, list[float]]:
    """Seconds of each call, turn by turn, `ROUNDS` at least; the first turn only warms up."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(max(ROUNDS, turns) + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                taken[name].append(time.perf_counter() - start)
    return taken


def _flops(name: str, tokens: int) -> int:
    shape = (HEADS, tokens, WIDTH, WIDTH)
    if name == "recurrent_cpu":
        return work.recurrent_flops(*shape)
    return work.parallel_flops(*shape) if "parallel" in name else work.chunkwise_flops(*shape, 64)


def _row(name: str, tokens: int, best: dict[str, float], rate: float) -> Row:
    limit = _flops(name, tokens) / rate
    return _said(
        f"gated linear {name} {tokens}",
        f"{HEADS} heads of {WIDTH}, forward; limit: its flops as one matrix product",
        seconds=best[name],
        limit_seconds=limit,
        fraction_of_limit=limit / best[name],
        ratio=best[SOFTMAX] / best[name],
        ratio_to=SOFTMAX,
    )


def _growth(name: str, times: dict[int, float]) -> Row:
    """The exponent of time in length over the longer lengths, as the ratio."""
    chosen = sorted(times)[-4:]
    slope = np.polyfit(np.log(chosen), np.log([times[t] for t in chosen]), 1)[0]
    return _said(
        f"{name} growth",
        f"exponent of time in length, {chosen[0]} to {chosen[-1]} tokens",
        ratio=float(slope),
        ratio_to="an exponent",
        holds_to="linear: about 1" if name == "chunkwise_cpu" else "",
    )


def _crossings(taken: dict[str, dict[int, float]]) -> list[Row]:
    """From which length on the chunkwise form is faster than each softmax attention."""
    ours, found = taken["chunkwise_cpu"], []
    for name in taken:
        if "softmax" in name:
            ratios = {t: taken[name][t] / ours[t] for t in ours}
            where = crossover(ratios)
            longest = max(ratios)
            found.append(
                _said(
                    f"crossover with {name}",
                    f"faster from {where} tokens on; ratio at {longest}" if where else "never",
                    ratio=ratios[longest],
                    ratio_to=name,
                    holds_to="ahead from 4096 tokens on",
                )
            )
    return found


def _backward() -> Row:
    """Gradients of chunkwise against those of torch's softmax attention at 4096 tokens."""
    given = dict(case(1, HEADS, 4096, WIDTH, WIDTH).make(0, torch.float32))
    leaves = [given[name].requires_grad_() for name in OPERATOR.inputs]
    o = OPERATOR(**given)[0]
    p = scaled_dot_product_attention(*leaves[:3], is_causal=True)
    sent = torch.randn_like(o)
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: torch.autograd.grad(o, leaves, sent, retain_graph=True),
        "torch": lambda: torch.autograd.grad(p, leaves[:3], sent, retain_graph=True),
    }
    best = {name: min(times) for name, times in _in_turns(calls).items()}
    return _said(
        "gated linear chunkwise_cpu 4096 gradients",
        f"{HEADS} heads of {WIDTH}, backward",
        seconds=best["ours"],
        ratio=best["torch"] / best["ours"],
        ratio_to=SOFTMAX,
    )


def _local() -> list[Row]:
    """Local linear attention, matrix-free beside matrices formed: time and bytes alive."""
    given = made(1, 1, 1024, 64, 64, 0.125, 1.0, 0, torch.float32)
    op = local.OPERATOR
    inputs = [given[name] for name in op.inputs]
    tiles = op.variants()["blocks_cpu"]
    calls: dict[str, Callable[[], Any]] = {
        "picked": lambda: op(**given),
        "blocks_cpu": lambda: tiles.call(**given),
        "naive": lambda: op.reference(**given),
    }
    taken = {name: min(times) for name, times in _in_turns(calls).items()}
    alive = {name: peak_bytes(calls[name], inputs) for name in ("blocks_cpu", "naive")}
    shape = "1 head of 64, 1024 tokens, ridge 1"
    found = [
        _said(
            f"local linear {op.pick(given).name if name == 'picked' else name}",
            f"{shape}: time",
            seconds=taken[name],
            ratio=taken["naive"] / taken[name],
            ratio_to="matrices formed",
        )
        for name in ("picked", "blocks_cpu")
    ]
    memory = _said(
        "local linear blocks_cpu memory",
        f"{shape}: {alive['blocks_cpu'] / 2**20:.2f} MiB of tensors alive at most",
        ratio=alive["naive"] / alive["blocks_cpu"],
        ratio_to="matrices formed",
        holds_to="below Θ(nd²)",
    )
    return [*found, memory]


def _said(name: str, what: str, **more: Any) -> Row:
    empty = dict.fromkeys(("seconds", "limit_seconds", "fraction_of_limit", "ratio"))
    return {"name": name, "what": what, **empty, "ratio_to": "", "holds_to": "", **more}
