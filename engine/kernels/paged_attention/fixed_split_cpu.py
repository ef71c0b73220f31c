"""Decode attention by fixed split-KV (FlashDecoding): each head's keys in so many equal parts."""

from functools import partial

from engine.kernels.operator import Variant
from engine.kernels.paged_attention.decode_cpu import decode, refuses
from engine.kernels.paged_attention.policies.fixed_split import FixedSplit

VARIANT = Variant(
    name="fixed_split_cpu",
    about="decode: every head's keys in the same number of parts",
    device="cpu",
    call=partial(decode, FixedSplit(), False),
    dtypes=("float32", "bfloat16"),
    rank=2,
    refuses=refuses,
)
