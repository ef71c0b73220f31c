"""Rows of measured tables: what was timed, on which device, or why the model does not cover it."""

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from engine.core.errors import BadInput
from engine.hardware import device, devices
from engine.hardware.cost.curves import BYTES
from engine.hardware.profiled import sheet_named

DTYPES = {
    "fp8": "float8",
    "fp8_block": "float8",
    "nvfp4": "float4",
    "fp16": "float16",
    "bf16": "bfloat16",
}
MAKERS = ("nvidia", "amd", "intel", "dgx")  # words before a device's name


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured time. `shape` is what the cost model asks of the operator, in its order.

    `group` names rows that are alike but for one size, which a fit holds out together; `laid` says
    of prompts whether their keys and values were laid into a cache within the time.
    """

    operator: str
    device: str
    shape: tuple[Any, ...]
    seconds: float
    group: str
    laid: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that the cost model does not cover, and why."""

    where: str
    why: str


Found: TypeAlias = Measured | LeftOut
Line: TypeAlias = dict[str, str]


class Cells:
    """One line of a table by column name; faults say the file, the line and the column.

    `origin`: the table's path and notes.
    """

    def __init__(self, where: str, line: Line, origin: str) -> None:
        self.where = where
        self.line = line
        self.origin = origin

    def text(self, column: str) -> str:
        value = self.line.get(column)
        if value is None or not value.strip():
            raise BadInput(f"{self.where}: column {column!r}: empty; every row needs one")
        return value.strip()

    def number(self, column: str, low: float = 0.0) -> float:
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise BadInput(f"{self.where}: column {column!r}: {text!r} is no number") from None
        if not low <= value < 1e18:
            raise BadInput(f"{self.where}: column {column!r}: {text} is not at least {low:g}")
        return value

    def count(self, column: str, low: int = 1) -> int:
        value = self.number(column, low)
        if value != int(value):
            raise BadInput(f"{self.where}: column {column!r}: {value:g} is no whole number")
        return int(value)

    def time(self, column: str, unit: float) -> float:
        return self.number(column, 1e-9) * unit


def sheet_of(name: str) -> str:
    """The data sheet that a table's device name stands for, "" if none: `a100_sxm`, `RTX4090`."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word and word not in MAKERS]
    slug = "-".join(words).removesuffix("-dgx")
    known = devices()
    for stem in (slug, slug.removesuffix("-sxm")):
        if stem in known:
            return stem
        likely = [sheet for sheet in known if sheet.startswith(f"{stem}-")]
        if likely:
            return min(likely, key=lambda s: ("sxm" not in s, -device(s).capacity, s))
    asked = _parts(slug)  # a name may say more than its sheet's does, or run its words together
    begins = [sheet for sheet in known if asked[: len(_parts(sheet))] == _parts(sheet)]
    if not begins:
        joined = [sheet for sheet in known if slug.replace("-", "") == sheet.replace("-", "")]
        begins = joined  # `rtxpro6000`
    named = sheet_named(name)  # as a driver calls it
    return max(begins, key=len, default=named.slug if named else "")


def _parts(slug: str) -> list[str]:
    """`rtx4090` and `rtx-4090` alike: letters and numbers apart, but a letter after a number."""
    return re.findall(r"[a-z]+|\d+[a-z]?", slug)


def dtype_of(text: str) -> str:
    return DTYPES.get(text, text)


def not_covered(cells: Cells, column: str, dtype: str) -> tuple[str, LeftOut | None]:
    """The sheet of the row's device, and why device or dtype is not covered; None if it is."""
    name = cells.text(column)
    sheet = sheet_of(name)
    why = ""
    if not sheet:
        why = f"device {name!r} has no data sheet"
    elif not device(sheet).units:
        why = f"the sheet of {sheet} gives no number of processors"
    elif dtype not in BYTES or dtype not in device(sheet).peaks:
        why = f"{dtype} on {sheet}: no peak known"
    return sheet, LeftOut(cells.where, why) if why else None
