"""What this machine can do: memory read and copied, numbers multiplied, kernels started.

Every other benchmark's limits come from here. Figures are measured now, never from an earlier day.
"""

from collections.abc import Callable
from typing import Any

from engine.hardware.device import Device, Spread
from engine.hardware.measure import probe

NAME = "hardware"
ABOUT = "memory and cache bandwidth, arithmetic peaks and call times of this machine"
QUICK, FULL = 5, 25  # repeats

# name -> (what it is, unit, factor into it)
UNITS = {
    "read_one_thread": ("read, one thread", "GB/s", 1e-9),
    "read": ("read, all threads", "GB/s", 1e-9),
    "copy_one_thread": ("copy, one thread (read and written)", "GB/s", 1e-9),
    "copy": ("copy, all threads (read and written)", "GB/s", 1e-9),
    **{
        f"read_{level}{part}": (f"read from {level}, {who}", "GB/s", 1e-9)
        for level in ("L1", "L2", "L3")
        for part, who in (("_one_thread", "one thread"), ("", "all threads"))
    },
    "multiply_add_one_thread": ("float32 multiply-add in registers, one thread", "GFLOP/s", 1e-9),
    "multiply_add": ("float32 multiply-add in registers, all threads", "GFLOP/s", 1e-9),
    "matmul_float32": ("float32 matrix product (torch), all threads", "GFLOP/s", 1e-9),
    "matmul_bfloat16": ("bfloat16 matrix product (torch), all threads", "GFLOP/s", 1e-9),
    "exponential": ("exponentials (torch), all threads", "G/s", 1e-9),
    "call": ("call of a compiled kernel", "µs", 1e6),
    "parallel_call": ("call of a compiled parallel kernel", "µs", 1e6),
    "torch_call": ("call of a torch operation", "µs", 1e6),
}


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row for each quantity, in its base unit, with its scatter and the date."""
    return rows(probe(say, FULL if full else QUICK))


def rows(found: Device) -> list[dict[str, Any]]:
    """A measured device as rows: bytes, flops and seconds."""
    return [_row(name, spread, found) for name, spread in found.spread.items()]


def _row(name: str, spread: Spread, found: Device) -> dict[str, Any]:
    about, unit, factor = UNITS[name]
    return {
        "name": name.replace("_", "-"),
        "about": about,
        "low": spread.low,
        "median": spread.median,
        "high": spread.high,
        "count": spread.count,
        "shown_unit": unit,
        "shown_factor": factor,
        "machine": found.name,
        "measured": found.measured,
    }


def table(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows for a person, in units that fit."""
    head = ("quantity", "median", "lowest", "highest", "unit", "measured")
    return [head, *(_cells(row) for row in found)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    shown = (f"{row[key] * row['shown_factor']:.3g}" for key in ("median", "low", "high"))
    return (row["about"], *shown, row["shown_unit"], row["measured"])
