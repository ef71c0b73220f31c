"""Tiled attention forward: a program a block of queries of one head.

After FlashAttention-2 (arXiv 2307.08691). Tensors are contiguous: q, out [T, H, D or E], k, v
[S, G, D or E], lse [T, H]; sequences follow each other from `query_start` and `key_start`. `scale`
and `cap` are in units of log 2.
"""

import triton
import triton.language as tl


@triton.jit
def load(base, rows, columns, stride, inside, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
         MASKED: tl.constexpr, INTERPRET: tl.constexpr):  # fmt: skip
    """Rows of `WIDTH` numbers, zeros beyond; the interpreter cannot multiply bfloat16."""
    place = base + rows.to(tl.int64)[:, None] * stride + columns[None, :]
    if MASKED or WIDTH != BLOCK:
        found = tl.load(place, mask=inside[:, None] & (columns < WIDTH)[None, :], other=0.0)
    else:
        found = tl.load(place)
    if INTERPRET:
        found = found.to(tl.float32)
    return found


@triton.jit
def capped(s, cap):
    """cap · tanh(s / cap), by way of a power that cannot overflow."""
    small = tl.exp2(-2.8853900817779268 * tl.abs(s / cap))
    bent = (1.0 - small) / (1.0 + small)
    return tl.where(s < 0, -bent, bent) * cap


@triton.jit
def visible(s, positions, keys, length, window, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr):
    """-inf where a query (by `positions` down) does not see a key (by `keys` across)."""
    back = positions[:, None] - keys[None, :]
    seen = (keys < length)[None, :]
    if CAUSAL:
        seen = seen & (back >= 0)
    if WINDOWED:
        seen = seen & (back < window)
    return tl.where(seen, s, float("-inf"))


@triton.jit
def _attend(
    result, best, below, q, k, v, positions, low, high, length, key_stride, value_stride, scale,
    cap, window,
    D: tl.constexpr, E: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    CAPPED: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, INTERPRET: tl.constexpr,
):  # fmt: skip
    """Fold keys low … high into the running result; MASKED where some of them are hidden."""
    columns, value_columns = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
    for first in range(low, high, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        there = keys < length
        k_ND = load(k, keys, columns, key_stride, there, D, BLOCK_D, MASKED, INTERPRET)
        s = tl.dot(q, tl.trans(k_ND), input_precision=PRECISION) * scale
        if CAPPED:
            s = capped(s, cap)
        if MASKED:
            s = visible(s, positions, keys, length, window, CAUSAL, WINDOWED)
        highest = tl.maximum(best, tl.max(s, 1))
        shift = highest
        if MASKED:
            shift = tl.where(highest == float("-inf"), 0.0, highest)
        p = tl.exp2(s - shift[:, None])
        fading = tl.exp2(best - shift)
        below = below * fading + tl.sum(p, 1)
        best = highest
        v_NE = load(v, keys, value_columns, value_stride, there, E, BLOCK_E, MASKED, INTERPRET)
        result = tl.dot(p.to(v_NE.dtype), v_NE, result * fading[:, None], input_precision=PRECISION)
    return result, best, below


@triton.jit
def forward(
    q, k, v, out, lse, query_start, key_start, H, G, scale, cap, window,
    D: tl.constexpr, E: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, INTERPRET: tl.constexpr,
):  # fmt: skip
    """Queries of block `program_id(0)`, counted from the end (the longest first), of one head."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    token, source = tl.load(query_start + sequence), tl.load(key_start + sequence)
    queries = (tl.load(query_start + sequence + 1) - token).to(tl.int32)
    length = (tl.load(key_start + sequence + 1) - source).to(tl.int32)
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    if start < queries:
        rows = start + tl.arange(0, BLOCK_M)
        offset = length - queries
        group = head // (H // G)
        columns, value_columns = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
        token, source = token.to(tl.int64), source.to(tl.int64)
        q_MD = load(q + (token * H + head) * D, rows, columns, H * D, rows < queries, D, BLOCK_D,
                    True, INTERPRET)  # fmt: skip
        k += (source * G + group) * D
        v += (source * G + group) * E
        best = tl.full([BLOCK_M], float("-inf"), tl.float32)
        below = tl.zeros([BLOCK_M], tl.float32)
        result = tl.zeros([BLOCK_M, BLOCK_E], tl.float32)
        low, high, whole = 0, length, length // BLOCK_N * BLOCK_N
        if CAUSAL:
            high = tl.maximum(0, tl.minimum(length, start + BLOCK_M + offset))
            whole = tl.maximum(0, tl.minimum(whole, (start + offset + 1) // BLOCK_N * BLOCK_N))
        if WINDOWED:
            low = tl.maximum(0, start + offset - window + 1) // BLOCK_N * BLOCK_N
            whole = low
        else:
            result, best, below = _attend(
                result, best, below, q_MD, k, v, rows + offset, low, whole, length, G * D, G * E,
                scale, cap, window, D, E, CAUSAL, WINDOWED, CAPPED, False, PRECISION, BLOCK_N,
                BLOCK_D, BLOCK_E, INTERPRET,
            )  # fmt: skip
        result, best, below = _attend(
            result, best, below, q_MD, k, v, rows + offset, whole, high, length, G * D, G * E,
            scale, cap, window, D, E, CAUSAL, WINDOWED, CAPPED, True, PRECISION, BLOCK_N, BLOCK_D,
            BLOCK_E, INTERPRET,
        )  # fmt: skip
        nothing = below == 0.0
        result = result / tl.where(nothing, 1.0, below)[:, None]
        total = (best + tl.log2(tl.where(nothing, 1.0, below))) * 0.6931471805599453
        there = rows < queries
        place = (token + rows) * H + head
        tl.store(lse + place, tl.where(nothing, float("-inf"), total), mask=there)
        tl.store(
            out + place[:, None] * E + value_columns[None, :],
            result,
            mask=there[:, None] & (value_columns < E)[None, :],
        )


_TENSORS = {"q": "*bf16", "k": "*bf16", "v": "*bf16", "out": "*bf16", "lse": "*fp32",
            "query_start": "*i64", "key_start": "*i64", "H": "i32", "G": "i32", "scale": "fp32",
            "cap": "fp32", "window": "i32"}  # fmt: skip
_SWITCHES = {"CAUSAL": True, "WINDOWED": False, "CAPPED": False, "PRECISION": "tf32",
             "INTERPRET": False, "num_warps": 8, "num_stages": 3}  # fmt: skip
COMPILES = tuple(
    ("forward", _TENSORS, {"D": dim, "E": dim, "BLOCK_M": 128, "BLOCK_N": keys, "BLOCK_D": dim,
                           "BLOCK_E": dim, **_SWITCHES})
    for dim, keys in ((64, 128), (128, 64))
)  # fmt: skip
