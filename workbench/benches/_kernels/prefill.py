"""Prefill attention beside torch's scaled_dot_product_attention, float32, 8 heads, in turns."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.kernels.attention import OPERATOR
from engine.kernels.attention.cases import case
from engine.kernels.attention.ceiling_cpu import products

HEADS = 8
ROUNDS = 9  # turns of each
PRODUCTS = 5000  # blocks that the tile alone multiplies, about 10 ms
ASKED = "no slower than torch"


def rows(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each size, length and mask, and for the gradients of the middle length.

    `ratio` is torch's time over ours, medians of turns; `limit_seconds` is what the same flops take
    at the rate of our multiply-add tile alone, data in the first cache, in turns too.
    """
    found = []
    for dim in (64, 128):
        for tokens in (512, 1024, 2048, 4096) if full else (512, 2048):
            for causal in (True, False):
                say(f"prefill: {HEADS} heads of {dim}, {tokens} tokens")
                found.append(_row(dim, tokens, causal, backward=False))
        found.append(_row(dim, 1024, True, backward=True))
    return found


def _row(dim: int, tokens: int, causal: bool, backward: bool) -> dict[str, Any]:
    given = dict(case("", (tokens,), HEADS, HEADS, dim, causal=causal).make(0, torch.float32))
    names = OPERATOR.inputs
    ours_in = {name: given[name].requires_grad_(backward) for name in names}
    theirs_in = [
        given[name].detach().transpose(0, 1)[None].contiguous().requires_grad_(backward)
        for name in names
    ]
    sent = torch.randn_like(given["q_THD"])
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: OPERATOR(**given)[0],
        "torch": lambda: scaled_dot_product_attention(*theirs_in, is_causal=causal),
        "tile": lambda: products(64, PRODUCTS),
    }
    if backward:
        back = sent.transpose(0, 1)[None].contiguous()
        ours_out, theirs_out = calls["ours"](), calls["torch"]()
        leaves = list(ours_in.values())
        calls["ours"] = lambda: torch.autograd.grad(ours_out, leaves, sent, retain_graph=True)
        calls["torch"] = lambda: torch.autograd.grad(theirs_out, theirs_in, back, retain_graph=True)
    taken = {name: median(times) for name, times in _in_turns(calls).items()}
    flops = OPERATOR.work(given).flops * (2.5 if backward else 1.0)
    limit = flops * taken["tile"] / products(64, PRODUCTS)
    mask, what = "causal" if causal else "dense", "gradients" if backward else "forward"
    return {
        "name": f"attention {what} {HEADS}x{tokens}x{dim} {mask}",
        "what": f"{OPERATOR.pick(given).name}; limit: its multiply-add tile alone",
        "seconds": taken["ours"],
        "limit_seconds": limit,
        "fraction_of_limit": limit / taken["ours"],
        "ratio": taken["torch"] / taken["ours"],
        "ratio_to": "torch scaled_dot_product_attention",
        "holds_to": "" if backward else ASKED,
    }


def _in_turns(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Times of each call, one of each a turn, after a turn that warms up."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                taken[name].append(time.perf_counter() - start)
    return taken
