"""The GPU's part of the kernels' bench, where there is one: see `workbench bench gpu`."""

from collections.abc import Callable
from typing import Any

from engine.core.errors import BadInput
from workbench.benches import gpu


def rows(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Its rows; without a GPU one that says so."""
    try:
        return gpu.run(full, say)
    except BadInput as fault:
        empty = dict.fromkeys(("seconds", "limit_seconds", "fraction_of_limit", "ratio"))
        return [{"name": "on a GPU", "what": str(fault), **empty, "ratio_to": "", "holds_to": ""}]
