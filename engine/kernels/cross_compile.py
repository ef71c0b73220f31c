"""Compiles Triton kernels for GPUs this machine does not have: down to cubin, without a driver.

In goes a kernel module `engine.kernels.<op>.<algorithm>_triton`, which lists in `COMPILES` its
kernels with example signatures; out comes what the compiler made of each. Nothing is run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from engine.core.errors import BadInput
from engine.kernels.triton_source import kernels

ROOT = Path(__file__).parent
WARP = 32  # threads that run in step on NVIDIA's GPUs


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel for one GPU: bytes of shared memory a program takes, bytes of cubin, its PTX."""

    module: str
    kernel: str
    capability: int
    shared: int
    size: int
    ptx: str


def modules() -> list[str]:
    """Every kernel module, by file name."""
    found = sorted(ROOT.rglob("*_triton.py"))
    return ["engine.kernels." + ".".join(p.relative_to(ROOT).with_suffix("").parts) for p in found]


def listed(module: str) -> tuple[tuple[str, Mapping[str, str], Mapping[str, Any]], ...]:
    """The module's `COMPILES`: (kernel, type of each argument, value of each constexpr)."""
    found = getattr(kernels(module, interpreted=False), "COMPILES", ())
    if not found:
        raise BadInput(f"{module}: no COMPILES; list each kernel with its argument types")
    return tuple(found)


def compile_for(
    module: str, name: str, types: Mapping[str, str], values: Mapping[str, Any], capability: int
) -> Compiled:
    """Compile one kernel for a GPU of compute `capability` (80, 90, …).

    `values` may hold "num_warps" and "num_stages" beside constexprs; without, 4 and 2.
    """
    function = getattr(kernels(module, interpreted=False), name, None)
    if function is None:
        raise BadInput(f"{module}: COMPILES names {name!r}, which is no kernel there")
    options = {"num_warps": values.get("num_warps", 4), "num_stages": values.get("num_stages", 2)}
    constants = {key: value for key, value in values.items() if key not in options}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(fn=function, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", capability, WARP), options=options)
    cubin, ptx = made.asm["cubin"], made.asm["ptx"]
    return Compiled(module, name, capability, made.metadata.shared, len(cubin), ptx)
