"""What a profiler's trace says of hardware: the work of its operations, the device they ran on.

Flops and bytes are counted from the shapes that PyTorch's profiler writes (`record_shapes=True`),
of matrix products only: they are the leaves that libraries run, so nothing is counted twice.
"""

import re
from math import prod
from typing import Any

from engine.core.chrome.work import Done, Work
from engine.core.tags import tag
from engine.hardware.device import Device, device, devices

FIRST = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}  # left factor
TYPES = {
    "float": ("float32", 4),
    "double": ("float64", 8),
    "c10::BFloat16": ("bfloat16", 2),
    "c10::Half": ("float16", 2),
}
AXES, LONGEST = 8, 1 << 40  # of a factor that is taken for one: axes, a side
FORM = re.compile(r"sxm|pcie|\d+gb")  # parts of a sheet's name that a driver may leave out


def matrix_product(name: str, dims: Any, types: Any) -> Done | None:
    """[…, m, k] by […, k, n]: 2 · … · m · k · n flops; factors read once, the result written once.

    None for shapes or types that are not known.
    """
    place = FIRST[name]
    left, right = (_sides(dims, place + i) for i in (0, 1))
    dtype, width = TYPES.get(str(_at(types, place)), ("", 0))
    if not dtype or len(left) < 2 or len(left) != len(right) or left[-1] != right[-2]:
        return None
    batch, (m, k), n = prod(left[:-2]), left[-2:], right[-1]
    size = width * batch * (m * k + k * n + m * n)
    shape = "x".join(str(d) for d in (*left[:-2], m, k, n))
    return Done(2.0 * batch * m * k * n, float(size), tag(dtype=dtype, shape=shape))


def _at(listed: Any, place: int) -> Any:
    return listed[place] if isinstance(listed, list) and place < len(listed) else None


def _sides(dims: Any, place: int) -> tuple[int, ...]:
    """A factor's sides; none where a file tells something else."""
    sides = _at(dims, place)
    if not isinstance(sides, list) or len(sides) > AXES:
        return ()
    good = all(type(side) is int and 0 < side < LONGEST for side in sides)
    return tuple(sides) if good else ()


PROFILED = Work(frozenset(FIRST), matrix_product)


def sheet_named(called: str) -> Device | None:
    """The data sheet of an accelerator as its driver calls it, such as "NVIDIA A100-SXM4-80GB"."""
    words = re.split(r"[^a-z0-9]+", called.lower())
    best: tuple[int, str] | None = None
    for name in devices():
        parts = name.split("-")
        needed = [part for part in parts if not FORM.fullmatch(part)]
        if not set(needed) <= set(words) or ("pcie" in parts) != ("pcie" in words):
            continue
        same = sum(any(word.startswith(part) for word in words) for part in parts)
        best = max(best or (0, ""), (same, name))
    return device(best[1]) if best else None
