"""Decode attention on a GPU by the lean split: a few programs a multiprocessor, equal runs of
tiles."""

from engine.kernels.operator import Variant
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.split_kv import RUNS, variant_facts

VARIANT = Variant(
    name="lean",
    about="decode: equal runs of key tiles for every multiprocessor, a merge kernel after",
    rank=3,
    **variant_facts(Lean(runs=RUNS)),
)
