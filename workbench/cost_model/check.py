"""How far the cost model is from measured tables: errors by operator and device, with quantiles.

In come rows of `workbench.cost_model.tables` and constants; out come rows of a report. An error is
predicted over measured time; `covered` is the part of measurements inside the model's interval.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.hardware import device, link
from engine.hardware.cost import attention, curves
from engine.hardware.cost.constants import Constants
from engine.hardware.cost.experts import experts
from workbench.cost_model.rows import LeftOut, Measured

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
NARROW = ("float8", "int8", "float4")  # products of these are operators of their own
PLAIN = ("matmul", "prefill", "decode", "experts", "chunk", "mixed")
MIB = 1 << 20
APART = {"matmul": "narrow", "experts": "narrow_experts"}


class Batch(NamedTuple):
    """Rows of one operator, device and kind, as the columns that the cost model asks for."""

    device: str
    kind: str  # dtype; of a collective, its name
    operator: str
    laid: bool  # keys and values of prompts into a cache
    columns: np.ndarray
    at: np.ndarray  # where its rows stood


class Batches:
    """Rows sorted into batches once, so that a fit can ask for them a thousand times."""

    def __init__(self, rows: Sequence[Measured]) -> None:
        together: dict[tuple[str, str, str, bool], list[int]] = defaultdict(list)
        for index, row in enumerate(rows):
            kind = row.shape[0] if row.operator == "collective" else row.shape[-1]
            together[row.device, kind, row.operator, row.laid].append(index)
        self.measured = np.array([row.seconds for row in rows])
        self.parts = [
            Batch(*key, np.array([_numbers(rows[i]) for i in at], np.float64).T, np.array(at))
            for key, at in together.items()
        ]

    def predicted(self, found: Callable[[str], Constants]) -> np.ndarray:
        """Seconds of each row, in order, by the constants that `found` gives of its device."""
        seconds = np.empty(len(self.measured))
        for part in self.parts:
            seconds[part.at] = _seconds(part, found(part.device))
        return seconds

    def errors(self, found: Callable[[str], Constants]) -> np.ndarray:
        """ln(predicted / measured) of each row."""
        return np.log(self.predicted(found) / self.measured)


def _numbers(row: Measured) -> tuple[float, ...]:
    if row.operator in PLAIN:
        return row.shape[:-1]
    return row.shape[1:] if row.operator == "collective" else row.shape[1:-1]


def _seconds(part: Batch, found: Constants) -> np.ndarray:
    on = device(part.device)
    if part.operator == "collective":
        by = link(on.scale_up)
        seconds = curves.collective(on, by, found, part.kind, *part.columns).seconds
    elif part.operator == "experts":
        seconds = experts(on, found, *part.columns, part.kind).seconds
    elif part.operator in ("prefill", "chunk"):
        B, new, H, G, dim, *rest = part.columns
        cached = rest[0] if rest else 0.0
        told = attention.prefill(on, found, B, new, H, G, dim, part.kind, cached, part.laid)
        seconds = told.seconds
    elif part.operator in PLAIN:
        where = curves if part.operator == "matmul" else attention
        seconds = getattr(where, part.operator)(on, found, *part.columns, part.kind).seconds
    else:
        seconds = curves.rows(on, found, part.operator, *part.columns, part.kind).seconds
    return np.asarray(seconds)


def called(row: Measured) -> str:
    """The operator as a report and a fit name it: products of 8 bits and less stand apart."""
    return APART.get(row.operator, row.operator) if row.shape[-1] in NARROW else row.operator


def told(row: Measured) -> str:
    """The operator as a report names it: collectives bound by latency and by links stand apart."""
    name = called(row)
    return f"{name} > 1 MiB" if name == "collective" and row.shape[2] > MIB else name


def errors(rows: Sequence[Measured], found: Constants) -> np.ndarray:
    """ln(predicted / measured) of each row by the same constants for all."""
    return Batches(rows).errors(lambda _: found)


def report(rows: Sequence[Measured], found: Callable[[str], Constants]) -> list[dict[str, Any]]:
    """A line for each operator and device."""
    wrong = Batches(rows).errors(found)
    together: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        together[row.device, told(row)].append(index)
    return [
        line(sheet, operator, wrong[together[sheet, operator]], found(sheet))
        for sheet, operator in sorted(together)
    ]


def line(sheet: str, operator: str, wrong: np.ndarray, found: Constants) -> dict[str, Any]:
    """What a report says of one operator on one device, by its rows' errors."""
    off = np.abs(np.expm1(wrong))
    quantiles = np.quantile(np.expm1(wrong), QUANTILES)
    said: dict[str, Any] = {"device": sheet, "operator": operator, "rows": len(wrong)}
    said |= {"median_error": float(np.median(off)), "p90_error": float(np.quantile(off, 0.9))}
    said |= {"worst_error": float(off.max()), "bias": float(np.expm1(np.mean(wrong)))}
    said["quantiles"] = {f"{q:g}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)}
    interval = found.interval(operator.partition(" ")[0])
    if interval:
        inside = (wrong >= interval.low) & (wrong <= interval.high)
        said["covered"] = float(inside.mean())
    return said


def reasons(left_out: Iterable[LeftOut]) -> Mapping[str, int]:
    """Why rows were left out, and how many each."""
    return Counter(row.why for row in left_out)
