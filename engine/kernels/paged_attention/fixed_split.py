"""Decode attention on a GPU by fixed split-KV: a program each part of a head, then a merge."""

from engine.kernels.operator import Variant
from engine.kernels.paged_attention.policies.fixed_split import FixedSplit
from engine.kernels.paged_attention.split_kv import variant_facts

VARIANT = Variant(
    name="fixed_split",
    about="decode: every head's keys in the same number of parts, a merge kernel after",
    rank=2,
    **variant_facts(FixedSplit()),
)
