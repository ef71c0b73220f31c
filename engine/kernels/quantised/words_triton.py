"""Product with packed codes: each program turns words into numbers as it steps along k."""

import triton
import triton.language as tl


@triton.jit
def quantised_matmul(
    x, words, scales, zeros, y, rows, outputs, inputs, x_stride, panel_words, groups, group,
    ZERO: tl.constexpr, BITS: tl.constexpr, WORDS: tl.constexpr, EXPONENT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # A step takes one block of inputs: 32 · WORDS / BITS of them, at WORDS words a lane.
    DEPTH: tl.constexpr = 32 * WORDS // BITS
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, DEPTH)
    panel, lane = (n // 16).to(tl.int64), n % 16
    bit = k * BITS
    word, shift = bit // 32, bit % 32
    ahead = tl.minimum(word + 1, WORDS - 1)  # read where a code crosses into the next word
    crosses = shift + BITS > 32
    start = words + panel * panel_words + lane
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(inputs, DEPTH)):
        inside = step * DEPTH + k < inputs
        at = start + step * (WORDS * 16)
        low = tl.load(at[None, :] + word[:, None] * 16).to(tl.uint32, bitcast=True)
        high = tl.load(at[None, :] + ahead[:, None] * 16).to(tl.uint32, bitcast=True)
        # In 64 bits a code is whole, whichever words it lies in.
        pair = low.to(tl.uint64) | tl.where(crosses[:, None], high.to(tl.uint64) << 32, 0)
        code = ((pair >> shift[:, None].to(tl.uint64)) & ((1 << BITS) - 1)).to(tl.int32)
        if EXPONENT > 0:
            sign = (code >> (BITS - 1)) << 15
            rest = (code & ((1 << (BITS - 1)) - 1)) << (11 - BITS + EXPONENT)
            value = (sign | rest).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        else:
            value = ((code << (32 - BITS)) >> (32 - BITS)).to(tl.float32)
        place = (panel * groups + step * DEPTH // group) * 16 + lane
        if ZERO:
            value = value - tl.load(zeros + place)[None, :]
        value = value * tl.load(scales + place)[None, :]
        rows_at = x + m.to(tl.int64)[:, None] * x_stride + (step * DEPTH + k)[None, :]
        left = tl.load(rows_at, mask=(m < rows)[:, None] & inside[None, :], other=0.0)
        total = tl.dot(left.to(tl.float32), value, total, input_precision="ieee")
    y_at = y + m.to(tl.int64)[:, None] * outputs + n[None, :]
    tl.store(y_at, total, mask=(m < rows)[:, None] & (n < outputs)[None, :])


TYPES = {
    "x": "*fp32", "words": "*i32", "scales": "*fp32", "zeros": "*fp32", "y": "*fp32",
    "rows": "i32", "outputs": "i32", "inputs": "i32", "x_stride": "i32", "panel_words": "i32",
    "groups": "i32", "group": "i32",
}  # fmt: skip
TILE = {"BLOCK_M": 16, "BLOCK_N": 64}
COMPILES = (
    ("quantised_matmul", TYPES, {"ZERO": True, "BITS": 5, "WORDS": 5, "EXPONENT": 0, **TILE}),
    ("quantised_matmul", TYPES, {"ZERO": False, "BITS": 8, "WORDS": 8, "EXPONENT": 4, **TILE}),
)
