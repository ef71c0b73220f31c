"""Kernels of chunkwise gated linear attention: states from chunk to chunk, then chunks in parallel.

Heads lie contiguous: (heads, time, width). A decay is e to a sum of gates, each at most zero, and
never a difference of two sums: -inf closes a gate, and nothing overflows or cancels.
Sub-chunks see each other through products; inside one, keys go one by one.
"""

import triton
import triton.language as tl


@triton.jit
def cumulate(gate, before, after, time, WIDTH: tl.constexpr, LENGTH: tl.constexpr):
    """Gates summed in stretches of LENGTH: up to t, and after t. Grid: (stretches, heads)."""
    r, d = tl.arange(0, LENGTH), tl.arange(0, WIDTH)
    t = tl.program_id(0) * LENGTH + r
    start = tl.program_id(1).to(tl.int64) * time
    place = (start + t)[:, None] * WIDTH + d[None, :]
    inside = (t < time)[:, None]
    own = tl.load(gate + place, mask=inside, other=0.0)
    tl.store(before + place, tl.cumsum(own, axis=0), mask=inside)
    more = ((r + 1 < LENGTH) & (t + 1 < time))[:, None]
    later = tl.load(gate + place + WIDTH, mask=more, other=0.0)
    tl.store(after + place, tl.cumsum(later, axis=0, reverse=True), mask=inside)


@triton.jit
def states(
    k, v, before, after, state, kept, time, KEY: tl.constexpr, VALUE: tl.constexpr,
    CHUNK: tl.constexpr, GATED_KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """kept[n] = state before chunk n; `state` becomes the last. Grid: (value blocks, heads).

    A state is KEY × VALUE; gates lie on keys, or else on values. BLOCK: values of one program.
    """
    head = tl.program_id(1).to(tl.int64)
    d, e = tl.arange(0, KEY), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    GATES: tl.constexpr = KEY if GATED_KEYS else VALUE
    if GATED_KEYS:
        gated = d
    else:
        gated = e
    place = d[:, None] * VALUE + e[None, :]
    now = tl.load(state + head * KEY * VALUE + place)
    chunks = tl.cdiv(time, CHUNK)
    for n in range(chunks):
        tl.store(kept + (head * chunks + n) * KEY * VALUE + place, now)
        t = n * CHUNK + tl.arange(0, CHUNK)
        inside = (t < time)[:, None]
        row = (head * time + t)[:, None]
        sent = tl.load(k + row * KEY + d[None, :], mask=inside, other=0.0)
        value = tl.load(v + row * VALUE + e[None, :], mask=inside, other=0.0)
        left = tl.exp(tl.load(after + row * GATES + gated[None, :], mask=inside, other=0.0))
        end = head * time + tl.minimum(n * CHUNK + CHUNK, time) - 1
        whole = tl.exp(tl.load(before + end * GATES + gated))
        if GATED_KEYS:
            now = now * whole[:, None]
            sent = sent * left
        else:
            now = now * whole[None, :]
            value = value * left
        now += tl.dot(tl.trans(sent), value, input_precision="ieee")
    tl.store(state + head * KEY * VALUE + place, now)


@triton.jit
def keys_gated(
    q, k, v, gate, before, after, kept, o, time, KEY: tl.constexpr, VALUE: tl.constexpr,
    CHUNK: tl.constexpr, SUB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """o of one sub-chunk and one block of values. Grid: (value blocks, sub-chunks, heads)."""
    head = tl.program_id(2).to(tl.int64)
    first = tl.program_id(1) * SUB
    chunk = first // CHUNK
    d, e = tl.arange(0, KEY), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = tl.arange(0, SUB)
    inside = (first + rows < time)[:, None]
    row = (head * time + first + rows)[:, None]
    query = tl.load(q + row * KEY + d[None, :], mask=inside, other=0.0)
    far = query * tl.exp(tl.load(before + row * KEY + d[None, :], mask=inside, other=0.0))
    out = tl.zeros((SUB, BLOCK), tl.float32)
    for back in range((first - chunk * CHUNK) // SUB):
        other = head * time + first - (back + 1) * SUB
        at = (other + rows)[:, None]
        key = tl.load(k + at * KEY + d[None, :])
        key = key * tl.exp(tl.load(after + at * KEY + d[None, :]))
        value = tl.load(v + at * VALUE + e[None, :])
        scores = tl.dot(far, tl.trans(key), input_precision="ieee")
        out += tl.dot(scores, value, input_precision="ieee")
        far = far * tl.exp(tl.load(before + (other + SUB - 1) * KEY + d))[None, :]
    size = head * tl.cdiv(time, CHUNK) + chunk
    state = tl.load(kept + size * KEY * VALUE + d[:, None] * VALUE + e[None, :])
    out += tl.dot(far, state, input_precision="ieee")
    # Inside: from the last key back, `query` picking up the gates between.
    last = tl.minimum(SUB, time - first)
    for back in range(last):
        s = last - 1 - back
        at = head * time + first + s
        key = tl.load(k + at * KEY + d)
        score = tl.sum(query * key[None, :], axis=1)
        score = tl.where(rows >= s, score, 0.0)
        out += score[:, None] * tl.load(v + at * VALUE + e)[None, :]
        query = query * tl.where(rows[:, None] >= s, tl.exp(tl.load(gate + at * KEY + d)), 1.0)
    tl.store(o + row * VALUE + e[None, :], out, mask=inside)


@triton.jit
def values_gated(
    x, w, z, gate, before, after, kept, y, time, KEY: tl.constexpr, VALUE: tl.constexpr,
    CHUNK: tl.constexpr, SUB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y of one sub-chunk, gates on the values z. Grid: (value blocks, sub-chunks, heads)."""
    head = tl.program_id(2).to(tl.int64)
    first = tl.program_id(1) * SUB
    chunk = first // CHUNK
    d, e = tl.arange(0, KEY), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = tl.arange(0, SUB)
    inside = (first + rows < time)[:, None]
    row = (head * time + first + rows)[:, None]
    query = tl.load(x + row * KEY + d[None, :], mask=inside, other=0.0)
    size = head * tl.cdiv(time, CHUNK) + chunk
    state = tl.load(kept + size * KEY * VALUE + d[:, None] * VALUE + e[None, :])
    out = tl.dot(query, state, input_precision="ieee")
    for j in range((first - chunk * CHUNK) // SUB):
        other = head * time + chunk * CHUNK + j * SUB
        at = (other + rows)[:, None]
        value = tl.load(z + at * VALUE + e[None, :])
        value = value * tl.exp(tl.load(after + at * VALUE + e[None, :]))
        key = tl.load(w + at * KEY + d[None, :])
        scores = tl.dot(query, tl.trans(key), input_precision="ieee")
        out = out * tl.exp(tl.load(before + (other + SUB - 1) * VALUE + e))[None, :]
        out += tl.dot(scores, value, input_precision="ieee")
    # Inside: token after token, what has been summed passing each gate.
    for s in range(tl.minimum(SUB, time - first)):
        at = head * time + first + s
        fall = tl.exp(tl.load(gate + at * VALUE + e))[None, :]
        key = tl.load(w + at * KEY + d)
        score = tl.sum(query * key[None, :], axis=1)
        score = tl.where(rows > s, score, 0.0)[:, None]
        passed = out * fall + score * tl.load(z + at * VALUE + e)[None, :]
        out = tl.where(rows[:, None] >= s, passed, out)
    tl.store(y + row * VALUE + e[None, :], out, mask=inside)


_SIZES = {"KEY": 64, "VALUE": 64, "CHUNK": 64, "BLOCK": 64}


def _types(names: str) -> dict[str, str]:
    return {**dict.fromkeys(names.split(), "*fp32"), "time": "i32"}


COMPILES = (
    ("cumulate", _types("gate before after"), {"WIDTH": 64, "LENGTH": 64}),
    ("states", _types("k v before after state kept"), {**_SIZES, "GATED_KEYS": True}),
    ("states", _types("k v before after state kept"), {**_SIZES, "GATED_KEYS": False}),
    ("keys_gated", _types("q k v gate before after kept o"), {**_SIZES, "SUB": 16}),
    ("values_gated", _types("x w z gate before after kept y"), {**_SIZES, "SUB": 16}),
)
