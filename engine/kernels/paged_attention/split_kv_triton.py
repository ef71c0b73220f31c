"""Paged decode attention in two kernels: partial results of runs of keys, then their merge.

Tensors are contiguous: q [T, H, D], k, v [P, S, G, D or E], out [T, H, E], parts [·, H, E] with
their natural log-sum-exps [·, H]. Items come from a plan (`plan.py`): a program does those from
`first[program]` to `first[program + 1]`, one after another. `scale` and `cap` as in the reference.
"""

import triton
import triton.language as tl


@triton.jit
def _run(
    q, k, v, table, begin, end, scale, cap,
    S: tl.constexpr, G: tl.constexpr, D: tl.constexpr, E: tl.constexpr, SHARE: tl.constexpr,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, INTERPRET: tl.constexpr,
):  # fmt: skip
    """Attention of SHARE queries over keys begin … end of one head: result [M, E], lse [M]."""
    rows, columns, value_columns = (
        tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_E),
    )  # fmt: skip
    there = (rows < SHARE)[:, None] & (columns < D)[None, :]
    q_MD = tl.load(q + rows[:, None] * D + columns[None, :], mask=there, other=0.0)
    if INTERPRET:
        q_MD = q_MD.to(tl.float32)
    best = tl.full([BLOCK_M], float("-inf"), tl.float32)
    below = tl.zeros([BLOCK_M], tl.float32)
    result = tl.zeros([BLOCK_M, BLOCK_E], tl.float32)
    for block in range(begin, end, BLOCK_N):
        keys = block + tl.arange(0, BLOCK_N)
        inside = keys < end
        page = tl.load(table + keys // S, mask=inside, other=0).to(tl.int64)
        token = (page * S + keys % S) * G
        k_ND = tl.load(
            k + token[:, None] * D + columns[None, :],
            mask=inside[:, None] & (columns < D)[None, :], other=0.0,
        )  # fmt: skip
        v_NE = tl.load(
            v + token[:, None] * E + value_columns[None, :],
            mask=inside[:, None] & (value_columns < E)[None, :], other=0.0,
        )  # fmt: skip
        if INTERPRET:
            k_ND, v_NE = k_ND.to(tl.float32), v_NE.to(tl.float32)
        s = tl.dot(q_MD.to(k_ND.dtype), tl.trans(k_ND), input_precision=PRECISION) * scale
        if CAPPED:
            small = tl.exp(-2.0 * tl.abs(s / cap))
            bent = (1.0 - small) / (1.0 + small)
            s = tl.where(s < 0, -bent, bent) * cap
        s = tl.where(inside[None, :], s, float("-inf"))
        highest = tl.maximum(best, tl.max(s, 1))  # finite: every block has a key
        p = tl.exp(s - highest[:, None])
        fading = tl.exp(best - highest)
        below = below * fading + tl.sum(p, 1)
        result = tl.dot(p.to(v_NE.dtype), v_NE, result * fading[:, None], input_precision=PRECISION)
        best = highest
    return result / below[:, None], best + tl.log(below)


@triton.jit
def partial(
    q, k, v, table, token, first, item_row, item_head, item_begin, item_end, item_part,
    out, part_o, part_lse, pages, H, scale, cap,
    S: tl.constexpr, G: tl.constexpr, D: tl.constexpr, E: tl.constexpr, SHARE: tl.constexpr,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_E: tl.constexpr, INTERPRET: tl.constexpr,
):  # fmt: skip
    """A program's items: each a run of keys of one key/value head, for the SHARE queries it serves.

    `pages`: width of the block table; `token`: each sequence's row in q.
    """
    program = tl.program_id(0)
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_E)
    there = (rows < SHARE)[:, None] & (columns < E)[None, :]
    for item in range(tl.load(first + program), tl.load(first + program + 1)):
        row, head = tl.load(item_row + item).to(tl.int64), tl.load(item_head + item)
        part, place = tl.load(item_part + item).to(tl.int64), tl.load(token + row).to(tl.int64)
        query = place * H + head * SHARE
        result, lse = _run(
            q + query * D, k + head * D, v + head * E, table + row * pages,
            tl.load(item_begin + item), tl.load(item_end + item), scale, cap, S, G, D, E, SHARE,
            CAPPED, PRECISION, BLOCK_M, BLOCK_N, BLOCK_D, BLOCK_E, INTERPRET,
        )  # fmt: skip
        if part < 0:
            tl.store(out + query * E + rows[:, None] * E + columns[None, :], result, mask=there)
        else:
            to = part * H + head * SHARE
            tl.store(part_o + to * E + rows[:, None] * E + columns[None, :], result, mask=there)
            tl.store(part_lse + to + rows, lse, mask=rows < SHARE)


@triton.jit
def merge(
    part_o, part_lse, token, merge_row, merge_head, merge_first, merge_last, out, H,
    E: tl.constexpr, SHARE: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    """One query head of a cut head: its parts, weighted by what their keys weigh together. Merges
    of no parts, which fill a plan of fixed size up, write nothing."""
    index = tl.program_id(0)
    row, first = tl.load(merge_row + index), tl.load(merge_first + index)
    last = tl.load(merge_last + index)
    head = tl.load(merge_head + index).to(tl.int64) * SHARE + tl.program_id(1)
    columns = tl.arange(0, BLOCK_E)
    result = tl.zeros([BLOCK_E], tl.float32)
    best, below = tl.load(part_lse + first * H + head), 0.0
    for part in range(first, last):
        at = part * H + head
        lse = tl.load(part_lse + at)
        highest = tl.maximum(best, lse)
        fading, weight = tl.exp(best - highest), tl.exp(lse - highest)
        values = tl.load(part_o + at * E + columns, mask=columns < E, other=0.0)
        result = result * fading + values * weight
        below = below * fading + weight
        best = highest
    if first < last:
        to = (tl.load(token + row).to(tl.int64) * H + head) * E
        tl.store(out + to + columns, result / below, mask=columns < E)


_PLAN = dict.fromkeys(
    ("table", "token", "first", "item_row", "item_head", "item_begin", "item_end", "item_part"),
    "*i32",
)
_PARTIAL = {
    "q": "*bf16", "k": "*bf16", "v": "*bf16", **_PLAN, "out": "*bf16", "part_o": "*fp32",
    "part_lse": "*fp32", "pages": "i32", "H": "i32", "scale": "fp32", "cap": "fp32",
}  # fmt: skip
_SWITCHES = {"S": 16, "G": 8, "SHARE": 4, "CAPPED": False, "INTERPRET": False, "BLOCK_M": 16}
COMPILES = (
    *(
        (
            "partial",
            _PARTIAL,
            {"D": dim, "E": dim, "BLOCK_D": dim, "BLOCK_E": dim, "BLOCK_N": 64,
             "PRECISION": "tf32", **_SWITCHES},
        )
        for dim in (64, 128)
    ),
    (
        "partial",
        {**_PARTIAL, **dict.fromkeys(("q", "k", "v", "out"), "*fp32")},
        {"D": 64, "E": 64, "BLOCK_D": 64, "BLOCK_E": 64, "BLOCK_N": 32, "PRECISION": "ieee",
         **_SWITCHES, "CAPPED": True},
    ),
    (
        "merge",
        {"part_o": "*fp32", "part_lse": "*fp32",
         **dict.fromkeys(("token", "merge_row", "merge_head", "merge_first", "merge_last"), "*i32"),
         "out": "*bf16", "H": "i32"},
        {"E": 128, "SHARE": 4, "BLOCK_E": 128},
    ),
)  # fmt: skip
