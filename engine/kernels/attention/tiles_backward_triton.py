"""Tiled attention backward (FlashAttention-2): a program a block of keys of one key
head for dk and dv, a program a block of queries of one head for dq; scores come again from `lse`.

Tensors are as in forward; `lse` (in log 2) and `delta` are [H, T] float32. `scale` and `cap` are in
units of log 2; gradients come out in units of the scores' natural scale by `slope`.
"""

import triton
import triton.language as tl


@triton.jit
def load(base, rows, columns, stride, inside, WIDTH: tl.constexpr, INTERPRET: tl.constexpr):
    """Rows of `WIDTH` numbers, zeros beyond; the interpreter cannot multiply bfloat16."""
    place = base + rows.to(tl.int64)[:, None] * stride + columns[None, :]
    found = tl.load(place, mask=inside[:, None] & (columns < WIDTH)[None, :], other=0.0)
    if INTERPRET:
        found = found.to(tl.float32)
    return found


@triton.jit
def store(base, rows, columns, stride, inside, values, WIDTH: tl.constexpr):
    """Rows of `WIDTH` numbers."""
    place = base + rows.to(tl.int64)[:, None] * stride + columns[None, :]
    tl.store(place, values, mask=inside[:, None] & (columns < WIDTH)[None, :])


@triton.jit
def gradient(
    s, dp, lse, delta, back, seen, cap, window,
    CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """Weights p and the gradient of uncapped scores, of a block of queries down, keys across.

    `back`: how far a key lies behind its query; `seen`: pairs within both sequences.
    """
    bend = 1.0
    if CAPPED:
        small = tl.exp2(-2.8853900817779268 * tl.abs(s / cap))
        bent = (1.0 - small) / (1.0 + small)
        s = tl.where(s < 0, -bent, bent) * cap
        bend = 1.0 - bent * bent
    if CAUSAL:
        seen = seen & (back >= 0)
    if WINDOWED:
        seen = seen & (back < window)
    p = tl.where(seen, tl.exp2(tl.where(seen, s - lse[:, None], 0.0)), 0.0)
    return p, p * (dp - delta[:, None]) * bend


@triton.jit
def backward_keys(
    q, k, v, do, lse, delta, dk, dv, query_start, key_start, T, H, G, scale, slope, cap, window,
    D: tl.constexpr, E: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, INTERPRET: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of BLOCK_N keys, over all query heads their head serves."""
    group, sequence = tl.program_id(1), tl.program_id(2)
    token = tl.load(query_start + sequence).to(tl.int64)
    source = tl.load(key_start + sequence).to(tl.int64)
    queries = (tl.load(query_start + sequence + 1) - token).to(tl.int32)
    length = (tl.load(key_start + sequence + 1) - source).to(tl.int32)
    first = tl.program_id(0) * BLOCK_N
    if first < length:
        keys = first + tl.arange(0, BLOCK_N)
        offset, there = length - queries, keys < length
        columns, value_columns = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
        k_ND = load(k + (source * G + group) * D, keys, columns, G * D, there, D, INTERPRET)
        v_NE = load(v + (source * G + group) * E, keys, value_columns, G * E, there, E, INTERPRET)
        dk_ND = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
        dv_NE = tl.zeros([BLOCK_N, BLOCK_E], tl.float32)
        low, high = 0, queries
        if CAUSAL:
            low = tl.maximum(0, first - offset) // BLOCK_M * BLOCK_M
        if WINDOWED:
            high = tl.minimum(queries, first + BLOCK_N - 1 + window - offset)
        share = H // G
        for member in range(share):
            head = group * share + member
            q_at, do_at = q + (token * H + head) * D, do + (token * H + head) * E
            line = head.to(tl.int64) * T + token
            for row in range(low, high, BLOCK_M):
                rows = row + tl.arange(0, BLOCK_M)
                inside = rows < queries
                q_MD = load(q_at, rows, columns, H * D, inside, D, INTERPRET)
                do_ME = load(do_at, rows, value_columns, H * E, inside, E, INTERPRET)
                lse_M = tl.load(lse + line + rows, mask=inside, other=0.0)
                delta_M = tl.load(delta + line + rows, mask=inside, other=0.0)
                s = tl.dot(q_MD, tl.trans(k_ND), input_precision=PRECISION) * scale
                dp = tl.dot(do_ME, tl.trans(v_NE), input_precision=PRECISION)
                p, ds = gradient(
                    s, dp, lse_M, delta_M, (rows + offset)[:, None] - keys[None, :],
                    inside[:, None] & there[None, :], cap, window, CAUSAL, WINDOWED, CAPPED,
                )  # fmt: skip
                dv_NE = tl.dot(tl.trans(p.to(do_ME.dtype)), do_ME, dv_NE, input_precision=PRECISION)
                dk_ND = tl.dot(tl.trans(ds.to(q_MD.dtype)), q_MD, dk_ND, input_precision=PRECISION)
        store(dk + (source * G + group) * D, keys, columns, G * D, there, dk_ND * slope, D)
        store(dv + (source * G + group) * E, keys, value_columns, G * E, there, dv_NE, E)


@triton.jit
def backward_queries(
    q, k, v, do, lse, delta, dq, query_start, key_start, T, H, G, scale, slope, cap, window,
    D: tl.constexpr, E: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, INTERPRET: tl.constexpr,
):  # fmt: skip
    """dq of a block of BLOCK_M queries of one head."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    token = tl.load(query_start + sequence).to(tl.int64)
    source = tl.load(key_start + sequence).to(tl.int64)
    queries = (tl.load(query_start + sequence + 1) - token).to(tl.int32)
    length = (tl.load(key_start + sequence + 1) - source).to(tl.int32)
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    if start < queries:
        rows = start + tl.arange(0, BLOCK_M)
        offset, inside = length - queries, rows < queries
        columns, value_columns = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E)
        q_MD = load(q + (token * H + head) * D, rows, columns, H * D, inside, D, INTERPRET)
        do_ME = load(do + (token * H + head) * E, rows, value_columns, H * E, inside, E, INTERPRET)
        line = head.to(tl.int64) * T + token
        lse_M = tl.load(lse + line + rows, mask=inside, other=0.0)
        delta_M = tl.load(delta + line + rows, mask=inside, other=0.0)
        group = head // (H // G)
        k += (source * G + group) * D
        v += (source * G + group) * E
        dq_MD = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        low, high = 0, length
        if CAUSAL:
            high = tl.maximum(0, tl.minimum(length, start + BLOCK_M + offset))
        if WINDOWED:
            low = tl.maximum(0, start + offset - window + 1) // BLOCK_N * BLOCK_N
        for first in range(low, high, BLOCK_N):
            keys = first + tl.arange(0, BLOCK_N)
            there = keys < length
            k_ND = load(k, keys, columns, G * D, there, D, INTERPRET)
            v_NE = load(v, keys, value_columns, G * E, there, E, INTERPRET)
            s = tl.dot(q_MD, tl.trans(k_ND), input_precision=PRECISION) * scale
            dp = tl.dot(do_ME, tl.trans(v_NE), input_precision=PRECISION)
            _, ds = gradient(
                s, dp, lse_M, delta_M, (rows + offset)[:, None] - keys[None, :],
                inside[:, None] & there[None, :], cap, window, CAUSAL, WINDOWED, CAPPED,
            )  # fmt: skip
            dq_MD = tl.dot(ds.to(k_ND.dtype), k_ND, dq_MD, input_precision=PRECISION)
        place = dq + (token * H + head) * D
        store(place, rows, columns, H * D, inside, dq_MD * slope, D)


_TENSORS = {"q": "*bf16", "k": "*bf16", "v": "*bf16", "do": "*bf16", "lse": "*fp32",
            "delta": "*fp32", "query_start": "*i64", "key_start": "*i64", "T": "i32", "H": "i32",
            "G": "i32", "scale": "fp32", "slope": "fp32", "cap": "fp32",
            "window": "i32"}  # fmt: skip
_VALUES = {"D": 128, "E": 128, "CAUSAL": True, "WINDOWED": False, "CAPPED": False,
           "PRECISION": "tf32", "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_D": 128, "BLOCK_E": 128,
           "INTERPRET": False, "num_warps": 8, "num_stages": 2}  # fmt: skip
COMPILES = (
    ("backward_keys", {**_TENSORS, "dk": "*bf16", "dv": "*bf16"}, _VALUES),
    ("backward_queries", {**_TENSORS, "dq": "*bf16"}, _VALUES),
)
