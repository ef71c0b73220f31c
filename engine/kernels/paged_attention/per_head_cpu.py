"""Decode attention, one worker a head: what a split of the keys is measured against."""

from functools import partial

from engine.kernels.operator import Variant
from engine.kernels.paged_attention.decode_cpu import decode, refuses
from engine.kernels.paged_attention.policies.per_head import PerHead

VARIANT = Variant(
    name="per_head_cpu",
    about="decode: one worker a head, whatever its length",
    device="cpu",
    call=partial(decode, PerHead(), False),
    dtypes=("float32", "bfloat16"),
    rank=1,
    refuses=refuses,
)
