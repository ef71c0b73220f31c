"""Decode attention, lean split (stream-K): as many tiles for one thread as for another."""

from functools import partial

from engine.kernels.operator import Variant
from engine.kernels.paged_attention.decode_cpu import decode, refuses
from engine.kernels.paged_attention.policies.lean import Lean

RUNS = 4  # for each thread: one that the system takes away holds up a quarter of its work

VARIANT = Variant(
    name="lean_cpu",
    about="decode: equal runs of key tiles for every thread, a sequence's heads together",
    device="cpu",
    call=partial(decode, Lean(runs=RUNS), True),
    dtypes=("float32", "bfloat16"),
    rank=4,
    refuses=refuses,
)
