"""Sampling: one program a row, walking over the vocabulary in blocks.

Cuts are found by halving over the bits of the weights, as the processor's kernel does, so no row is
sorted. Weights are float64 in a scratch row: a draw in float32 could not tell the tail apart.
"""

import triton
import triton.language as tl


@triton.jit
def mix(value):
    """One splitmix64 output of 64 unsigned bits."""
    value = value + 0x9E3779B97F4A7C15
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB
    return value ^ (value >> 31)


@triton.jit
def likeliest(logits, vocab, BLOCK: tl.constexpr):
    """The lowest token of the largest logit, and that logit."""
    column = tl.arange(0, BLOCK)
    top = float("-inf")
    for first in range(0, vocab, BLOCK):
        x = tl.load(logits + first + column, mask=first + column < vocab, other=float("-inf"))
        top = tl.maximum(top, tl.max(x.to(tl.float32), axis=0))
    token = vocab
    for first in range(0, vocab, BLOCK):
        x = tl.load(logits + first + column, mask=first + column < vocab, other=float("-inf"))
        at = tl.where((x.to(tl.float32) == top) & (first + column < vocab), first + column, vocab)
        token = tl.minimum(token, tl.min(at, axis=0))
    return tl.where(token < vocab, token, 0), top


@triton.jit
def least(weights, vocab, count, mass, BLOCK: tl.constexpr):
    """Bits of the largest value that `count` weights, of `mass` together, reach."""
    column = tl.arange(0, BLOCK)
    low = tl.zeros((), tl.int64)
    high = low + 0x3FF0000000000001  # past the bits of 1.0
    for _ in range(62):
        middle = (low + high) // 2
        found, total = tl.zeros((), tl.int64), tl.zeros((), tl.float64)
        for first in range(0, vocab, BLOCK):
            w = tl.load(weights + first + column, mask=first + column < vocab, other=-1.0)
            reach = w.to(tl.int64, bitcast=True) >= middle
            found += tl.sum(reach.to(tl.int64), axis=0)
            total += tl.sum(tl.where(reach, w, 0.0), axis=0)
        enough = (found >= count) & (total >= mass)
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    return low


@triton.jit
def mass_above(weights, vocab, bits, BLOCK: tl.constexpr):
    """Sum of the weights whose bits are more than `bits`."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((), tl.float64)
    for first in range(0, vocab, BLOCK):
        w = tl.load(weights + first + column, mask=first + column < vocab, other=0.0)
        total += tl.sum(tl.where(w.to(tl.int64, bitcast=True) > bits, w, 0.0), axis=0)
    return total


@triton.jit
def cut(weights, vocab, bits, kept, BLOCK: tl.constexpr):
    """Zero weights below `bits`, and of those that equal it all but the first `kept`."""
    column = tl.arange(0, BLOCK)
    seen = tl.zeros((), tl.int64)
    for first in range(0, vocab, BLOCK):
        inside = first + column < vocab
        w = tl.load(weights + first + column, mask=inside, other=0.0)
        mine = w.to(tl.int64, bitcast=True)
        equal = (mine == bits) & inside
        rank = seen + tl.cumsum(equal.to(tl.int64), axis=0)
        gone = (mine < bits) | (equal & (rank > kept))
        tl.store(weights + first + column, tl.where(gone, 0.0, w), mask=inside)
        seen += tl.sum(equal.to(tl.int64), axis=0)
    tl.debug_barrier()


@triton.jit
def chosen(weights, vocab, share, BLOCK: tl.constexpr):
    """The first token at which the running sum of weights passes `share` of their whole sum."""
    column = tl.arange(0, BLOCK)
    wanted = share * mass_above(weights, vocab, tl.zeros((), tl.int64), BLOCK)
    passed = tl.zeros((), tl.float64)
    token, last = vocab, 0
    for first in range(0, vocab, BLOCK):
        at = first + column
        w = tl.load(weights + at, mask=at < vocab, other=0.0)
        sums = passed + tl.cumsum(w, axis=0)
        token = tl.minimum(token, tl.min(tl.where((w > 0) & (sums > wanted), at, vocab), axis=0))
        last = tl.maximum(last, tl.max(tl.where(w > 0, at, 0), axis=0))
        passed += tl.sum(w, axis=0)
    return tl.where(token < vocab, token, last)


@triton.jit
def sample(
    logits, temperature, top_k, top_p, min_p, seed, position, scratch, tokens, logprobs, vocab,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits += row * vocab
    column = tl.arange(0, BLOCK)
    token, top = likeliest(logits, vocab, BLOCK)
    total = tl.zeros((), tl.float32)
    for first in range(0, vocab, BLOCK):
        x = tl.load(logits + first + column, mask=first + column < vocab, other=float("-inf"))
        total += tl.sum(tl.exp(x.to(tl.float32) - top), axis=0)
    heat = tl.load(temperature + row).to(tl.float64)
    if heat > 0:
        weights = scratch + row * vocab
        for first in range(0, vocab, BLOCK):
            inside = first + column < vocab
            x = tl.load(logits + first + column, mask=inside, other=float("-inf"))
            apart = x.to(tl.float32).to(tl.float64) - top.to(tl.float64)
            tl.store(weights + first + column, tl.exp(apart / heat), mask=inside)
        tl.debug_barrier()  # other threads of the program read what these wrote
        k = tl.load(top_k + row)
        if (k > 0) & (k < vocab):
            bits = least(weights, vocab, k, tl.zeros((), tl.float64), BLOCK)
            cut(weights, vocab, bits, vocab, BLOCK)
        p = tl.load(top_p + row).to(tl.float64)
        if p < 1:
            mass = p * mass_above(weights, vocab, tl.zeros((), tl.int64), BLOCK)
            bits = least(weights, vocab, 1, mass, BLOCK)
            short = mass - mass_above(weights, vocab, bits, BLOCK)
            each = bits.to(tl.float64, bitcast=True)
            cut(weights, vocab, bits, tl.ceil(short / each).to(tl.int64), BLOCK)
        m = tl.load(min_p + row).to(tl.float64)
        if m > 0:
            cut(weights, vocab, m.to(tl.int64, bitcast=True), vocab, BLOCK)
        mixed = mix(tl.load(seed + row).to(tl.uint64))
        mixed = mix(mixed ^ tl.load(position + row).to(tl.uint64)) >> 11
        share = mixed.to(tl.int64).to(tl.float64) * 1.1102230246251565e-16  # 2⁻⁵³
        token = chosen(weights, vocab, share, BLOCK)
    tl.store(tokens + row, token)
    at = tl.load(logits + token).to(tl.float32)
    tl.store(logprobs + row, at - top - tl.log(total))


COMPILES = (
    (
        "sample",
        {
            "logits": "*fp32",
            **dict.fromkeys(("temperature", "top_p", "min_p"), "*fp32"),
            **dict.fromkeys(("top_k", "seed", "position"), "*i64"),
            "scratch": "*fp64",
            "tokens": "*i32",
            "logprobs": "*fp32",
            "vocab": "i32",
        },
        {"BLOCK": 1024},
    ),
)
