"""Kernel of local linear attention: a tile of queries solves its systems over blocks of keys.

Heads lie contiguous: (heads, time, width), widths padded with zeros. Weights are made again from
queries and keys whenever they are needed, so a program holds nothing that grows with the sequence.
"""

import triton
import triton.language as tl


@triton.jit
def attend(
    q, k, v, o, time, scale, ridge, iterations, goal,
    KEY: tl.constexpr, VALUE: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """o of one tile of queries. `goal`: squared relative residual to stop at.

    Grid: (tiles of queries, heads).
    """
    head = tl.program_id(1).to(tl.int64) * time
    first = tl.program_id(0) * QUERIES
    t, d, e = first + tl.arange(0, QUERIES), tl.arange(0, KEY), tl.arange(0, VALUE)
    columns = tl.arange(0, KEYS)
    inside = (t < time)[:, None]
    rows = (head + t)[:, None]
    query = tl.load(q + rows * KEY + d[None, :], mask=inside, other=0.0)
    blocks = tl.cdiv(tl.minimum(first + QUERIES, time), KEYS)
    # The softmax's largest score, its sum, and the mean key.
    largest = tl.full((QUERIES,), -1e30, tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mean = tl.zeros((QUERIES, KEY), tl.float32)
    for block in range(blocks):
        s = block * KEYS + columns
        there = (s < time)[:, None]
        key = tl.load(k + (head + s)[:, None] * KEY + d[None, :], mask=there, other=0.0)
        scores = scale * tl.dot(query, tl.trans(key), input_precision="ieee")
        scores = tl.where(s[None, :] <= t[:, None], scores, -1e30)
        higher = tl.maximum(largest, tl.max(scores, axis=1))
        fade = tl.exp(largest - higher)
        weight = tl.where(s[None, :] <= t[:, None], tl.exp(scores - higher[:, None]), 0.0)
        total = total * fade + tl.sum(weight, axis=1)
        mean = mean * fade[:, None] + tl.dot(weight, key, input_precision="ieee")
        largest = higher
    mean = mean / total[:, None]
    # Conjugate gradients for (C + ridge) z = q - mean, every query its own system.
    left = query - mean
    direction = left
    z = tl.zeros((QUERIES, KEY), tl.float32)
    size = tl.sum(left * left, axis=1)
    enough = size * goal
    step = 0
    while (step < iterations) & (tl.sum((size > enough).to(tl.int32), axis=0) > 0):
        turned = ridge * direction
        offset = tl.sum(direction * mean, axis=1)
        rest = tl.zeros((QUERIES,), tl.float32)
        for block in range(blocks):
            s = block * KEYS + columns
            key = tl.load(
                k + (head + s)[:, None] * KEY + d[None, :], mask=(s < time)[:, None], other=0.0
            )
            scores = scale * tl.dot(query, tl.trans(key), input_precision="ieee")
            seen = s[None, :] <= t[:, None]
            weight = tl.exp(tl.where(seen, scores - largest[:, None], -1e30)) / total[:, None]
            slope = tl.dot(direction, tl.trans(key), input_precision="ieee") - offset[:, None]
            weighed = weight * slope
            rest += tl.sum(weighed, axis=1)
            turned += tl.dot(weighed, key, input_precision="ieee")
        turned -= rest[:, None] * mean
        moving = size > enough
        curved = tl.sum(direction * turned, axis=1)
        length = tl.where(moving, size / tl.where(moving, curved, 1.0), 0.0)
        z += length[:, None] * direction
        left -= length[:, None] * turned
        shorter = tl.where(moving, tl.sum(left * left, axis=1), size)
        turn = tl.where(moving, shorter / tl.where(moving, size, 1.0), 0.0)
        direction = left + turn[:, None] * direction
        size = shorter
        step += 1
    # The output: values weighed by p · (1 + slope).
    offset = tl.sum(z * mean, axis=1)
    out = tl.zeros((QUERIES, VALUE), tl.float32)
    for block in range(blocks):
        s = block * KEYS + columns
        there = (s < time)[:, None]
        key = tl.load(k + (head + s)[:, None] * KEY + d[None, :], mask=there, other=0.0)
        value = tl.load(v + (head + s)[:, None] * VALUE + e[None, :], mask=there, other=0.0)
        scores = scale * tl.dot(query, tl.trans(key), input_precision="ieee")
        seen = s[None, :] <= t[:, None]
        weight = tl.exp(tl.where(seen, scores - largest[:, None], -1e30)) / total[:, None]
        slope = tl.dot(z, tl.trans(key), input_precision="ieee") - offset[:, None]
        out += tl.dot(weight * (1.0 + slope), value, input_precision="ieee")
    tl.store(o + rows * VALUE + e[None, :], out, mask=inside)


COMPILES = (
    (
        "attend",
        {
            **dict.fromkeys(("q", "k", "v", "o"), "*fp32"),
            **dict.fromkeys(("time", "iterations"), "i32"),
            **dict.fromkeys(("scale", "ridge", "goal"), "fp32"),
        },
        {"KEY": 64, "VALUE": 64, "QUERIES": 32, "KEYS": 32},
    ),
)
