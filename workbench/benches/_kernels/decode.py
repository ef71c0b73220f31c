"""Decode attention over a paged cache: against memory, against torch, and split against split.

Calls of one comparison take turns, with the memory probe between; the fastest of the rounds counts
for everyone, the probe included, so that a busy minute falls on all of them.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import torch

from engine.hardware import probes
from engine.kernels.operator import Arguments
from engine.kernels.paged_attention import OPERATOR
from engine.kernels.paged_attention.cases import made
from engine.kernels.paged_attention.decode_cpu import decode
from engine.kernels.paged_attention.lean_cpu import RUNS
from engine.kernels.paged_attention.policies.fixed_split import FixedSplit
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.policies.per_head import PerHead

PROBE = 1 << 28  # bytes: well past any cache
Row = dict[str, Any]


def rows(full: bool, say: Callable[[str], None]) -> list[Row]:
    """Uniform batches against the read rate and torch, ragged ones split against split."""
    torch.set_num_threads(probes.threads())
    rounds = 40 if full else 12
    found = []
    for name, shuffled in (("pages in order", False), ("pages shuffled", True)):
        say(f"decode attention, batch 8, 8 heads, 16k tokens, {name}")
        found += _uniform(name, shuffled, rounds)
    for kv_heads in (1, 8):
        say(f"decode attention, one 64k context among seven of 1k, {kv_heads} key heads")
        found += _ragged(kv_heads, 4 * rounds)
    return found


def _uniform(name: str, shuffled: bool, rounds: int) -> list[Row]:
    batch, heads, dim, context = 8, 8, 64, 16384
    given = made(
        heads, heads, dim, [1] * batch, [context] * batch, 0, torch.float32, shuffled=shuffled
    )
    k_BHND, v_BHND = (_gathered(given, name, context).contiguous() for name in ("k_PSGD", "v_PSGE"))
    q_BH1D = given["q_THD"][:, :, None]
    torch_call = partial(
        torch.nn.functional.scaled_dot_product_attention, q_BH1D, k_BHND, v_BHND,
        scale=given["scale"],
    )  # fmt: skip

    def gathering() -> torch.Tensor:
        held = (_gathered(given, name, context) for name in ("k_PSGD", "v_PSGE"))
        return torch.nn.functional.scaled_dot_product_attention(q_BH1D, *held, scale=given["scale"])

    ours = OPERATOR.pick(given)
    calls = {"ours": partial(ours.call, **given), "torch": torch_call, "gathering": gathering}
    best, read = _turns(calls, rounds)
    limit = OPERATOR.work(given).bytes["memory"] / read
    told = f"{ours.name}; limit: {read / 1e9:.1f} GB/s read in this run"
    others = (
        ("torch", "torch on the gathered cache", told, "" if shuffled else "≥ 80% and ≥ 1.5×"),
        ("gathering", "torch, gathering the pages and attention", "what each step of a paged "
         "cache costs with torch alone", ""),
    )  # fmt: skip
    return [
        _row(
            f"decode 8x8x64@16k, {name}", what, best["ours"], limit, best[other] / best["ours"],
            to, asked,
        )
        for other, to, what, asked in others
    ]  # fmt: skip


def _gathered(given: Arguments, name: str, context: int) -> torch.Tensor:
    """A copy of a cache tensor's pages in order, as torch's attention takes it: [B, H, N, D]."""
    held = given[name][given["block_table_BP"].long()]
    return held.flatten(1, 2)[:, :context].transpose(1, 2)


def _ragged(kv_heads: int, rounds: int) -> list[Row]:
    contexts = [65536] + [1024] * 7
    given = made(8, kv_heads, 128, [1] * 8, contexts, 0, torch.float32)
    splits = {
        "lean": Lean(runs=RUNS),
        "one worker a head": PerHead(),
        "fixed split, chosen": FixedSplit(),
        **{f"fixed split, {parts} parts": FixedSplit(parts=parts) for parts in (2, 3, 4, 8)},
    }
    calls: dict[str, Callable[[], Any]] = {
        name: partial(decode, split, False, **given) for name, split in splits.items()
    }
    half = sum(contexts) // 2
    even = made(8, kv_heads, 128, [1, 1], [half, half], 0, torch.float32)
    each = partial(decode, PerHead(), False, **even)
    calls |= {"even": each, "even, one thread": partial(_on_one_thread, each)}
    best, read = _turns(calls, rounds)
    most = best.pop("even, one thread") / best["even"]
    even_row = _row(
        f"the same keys in two even contexts, {kv_heads} of 8 heads",
        "the most that a second worker can give here, whatever the split", best["even"],
        OPERATOR.work(even).bytes["memory"] / read, most, "one worker", "",
    )  # fmt: skip
    del best["even"]
    limit = OPERATOR.work(given).bytes["memory"] / read
    fixed = min((name for name in best if name.startswith("fixed")), key=lambda name: best[name])
    asked = {"one worker a head": "≥ 1.5×", fixed: "≥ 1×"} if kv_heads == 1 else {}
    return [
        _row(
            f"lean, 64k among 1k, {kv_heads} of 8 heads",
            "the best number of parts" if other == fixed else "",
            best["lean"], limit, best[other] / best["lean"], other, asked.get(other, ""),
        )
        for other in best
        if other != "lean"
    ] + [even_row]  # fmt: skip


def _on_one_thread(call: Callable[[], Any]) -> None:
    had = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        call()
    finally:
        numba.set_num_threads(had)


def _turns(calls: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], float]:
    """The fastest seconds of each call and the highest read rate, in bytes a second."""
    best, read = dict.fromkeys(calls, float("inf")), 0.0
    for call in calls.values():
        call()
    names = list(calls)
    for turn in range(rounds):
        read = max(read, *probes.read_rates(PROBE, probes.threads(), 2))
        # Whoever comes first after the probe finds the caches emptied: each in turn.
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            calls[name]()
            best[name] = min(best[name], time.perf_counter() - start)
    return best, read


def _row(
    name: str, what: str, seconds: float, limit: float, ratio: float, ratio_to: str, holds_to: str
) -> Row:
    return {
        "name": name,
        "what": what,
        "seconds": seconds,
        "limit_seconds": limit,
        "fraction_of_limit": limit / seconds,
        "ratio": ratio,
        "ratio_to": ratio_to,
        "holds_to": holds_to,
    }
