"""Decode on threads of this machine, on the wall clock."""

import os
from typing import Any, ClassVar, Literal

import numba
import torch

from engine.core.config import knob
from engine.core.difference import relative
from engine.core.errors import BadInput
from engine.core.memory import require
from engine.hardware.measure import known_roofs
from engine.hardware.roofs import THIS_MACHINE
from engine.kernels.operator import Arguments
from engine.kernels.paged_attention.cases import made as cases_made
from engine.kernels.paged_attention.decode_cpu import run_plan
from engine.kernels.paged_attention.plan import Plan
from engine.kernels.paged_attention.reference import paged_attention
from engine.kernels.paged_attention.workers import Shape, Times, Workers

DTYPES = ("float32", "bfloat16")
COPIES = 4  # of the cache in memory at once: its own, the float64 that it is held to, a sweep's


class Real(Workers):
    """Each computes its own run of keys, or takes the next piece when it is done with its last."""

    formerly: ClassVar = ("threads",)
    kind: Literal["real"] = "real"
    count: int = knob(2, "threads", low=1, high=64)

    def number(self) -> int:
        most = min(os.cpu_count() or 1, numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        if self.count > most:
            raise BadInput(
                f"workers.count: {self.count} threads on {most} cores; give at most {most}, or "
                "workers=modelled"
            )
        return self.count

    def arguments(self, contexts: list[int], shape: Shape, seed: int) -> Arguments:
        if shape.dtype not in DTYPES:
            raise BadInput(
                f"dtype {shape.dtype}: threads compute {' or '.join(DTYPES)}; choose one, or "
                "workers=modelled"
            )
        size = sum(contexts) * shape.key_bytes * shape.kv_heads
        advice = "take fewer or shorter sequences, or workers=modelled"
        require(COPIES * size, f"keys and values of {sum(contexts):,} tokens", advice)
        return cases_made(
            shape.heads, shape.kv_heads, shape.dim, [1] * len(contexts), contexts, seed,
            getattr(torch, shape.dtype),
        )  # fmt: skip

    def work(self, made: Plan, shape: Shape, given: Arguments | None, rescale: bool) -> Times:
        trace = self._run(made, given, rescale)[1]
        return Times(trace.item_I2, trace.worker_I, trace.merge_M2, trace.merger_M)

    def error(self, made: Plan, given: Arguments | None, rescale: bool) -> float:
        assert given is not None
        wide: dict[str, Any] = {
            name: value.double() if torch.is_tensor(value) and value.is_floating_point() else value
            for name, value in given.items()
        }
        truth = paged_attention(**wide)
        found = self._run(made, given, rescale)[0]
        return relative(found, truth)

    def _run(self, made: Plan, given: Arguments | None, rescale: bool) -> Any:
        assert given is not None
        masked = numba.get_num_threads()
        numba.set_num_threads(self.number())
        try:
            return run_plan(
                made, given["q_THD"], given["k_PSGD"], given["v_PSGE"],
                given["block_table_BP"].numpy(), given["query_start_B1"].numpy()[:-1],
                scale=given["scale"], rescale=rescale,
            )  # fmt: skip
        finally:
            numba.set_num_threads(masked)

    def facts(self) -> dict[str, Any]:
        roofs = known_roofs(self.number())
        return {"grade": "measured", "device": THIS_MACHINE, "roofs": roofs}
