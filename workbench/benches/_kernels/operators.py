"""Every operator's picked variant on the processor, at its sizes, against the measured roofs."""

from collections.abc import Callable
from typing import Any

from engine.core.errors import BadInput
from engine.hardware.measure import probe
from engine.kernels.operator import Operator, operators
from workbench.kernel_times import times

REPEATS = 5  # of each roof, measured in the same run


def rows(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each operator and size; without `full` only each operator's first size."""
    machine = probe(say, REPEATS)
    found = []
    for op in operators().values():
        sizes = op.sizes if full else op.sizes[:1]
        for size in sizes:
            found += _size(op, size, machine)
    return found


def _size(op: Operator, size: Any, machine: Any) -> list[dict[str, Any]]:
    import torch

    try:
        variant = op.pick(size.make(0, torch.float32))
    except BadInput as fault:
        return [_row(f"{op.name} {size.name}", str(fault), {})]
    name = f"{op.name} {size.name}"
    return [
        _row(name, f"{variant.name}: {variant.about}; {row['roof']}-bound", row)
        for row in times(op, variant, machine, sizes=(size,))
    ]


def _row(name: str, what: str, row: dict[str, Any]) -> dict[str, Any]:
    kept = {key: row.get(key) for key in ("seconds", "limit_seconds", "fraction_of_limit")}
    return {"name": name, "what": what, **kept, "ratio": None, "ratio_to": "", "holds_to": ""}
