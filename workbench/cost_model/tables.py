"""Tables of measured operator times, told apart by their columns.

In comes a CSV file (lines that begin with # are notes); out come rows that name an operator of the
cost model with its shape. Layouts: products (m, n, k), attention (phase, heads …), operators of a
layer (model, tp, num_tokens, …_ms), collectives (op, gpus, message_size) and networks.
"""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.errors import BadInput
from engine.hardware import device, devices
from engine.hardware.cost.curves import BYTES
from workbench.cost_model.layers import LAYER, model_of

DTYPES = {"fp8": "float8", "fp8_block": "float8", "nvfp4": "float4", "fp16": "float16"}
POWER = re.compile(r"balanced|uniform|power_law_(\d+\.?\d*)")
OPS = {"alltoall": "all_to_all"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured time. `shape` is what the cost model asks of the operator, in its order.

    `group` names rows that are alike but for one size, which a fit holds out together.
    """

    operator: str
    device: str
    shape: tuple[Any, ...]
    seconds: float
    group: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that the cost model does not cover, and why."""

    where: str
    why: str


Found: TypeAlias = Measured | LeftOut
Line: TypeAlias = dict[str, str]


class Cells:
    """One line of a table by column name; faults say the file, the line and the column."""

    def __init__(self, where: str, line: Line) -> None:
        self.where = where
        self.line = line

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


def table(path: Path) -> list[Found]:
    """Every row of a table. Raises BadInput naming file, line and column."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "not text"
        raise BadInput(f"{path}: cannot read ({why}); give a CSV file") from None
    numbered = [(i, line) for i, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]
    if not numbered:
        raise BadInput(f"{path}: no rows; give a CSV file with a header")
    head = [name.strip() for name in next(csv.reader([numbered[0][1]]))]
    layout = _layout(path, set(head))
    found: list[Found] = []
    for number, line in numbered[1:]:
        where = f"{path}:{number}"
        values = next(csv.reader([line]))
        if len(values) != len(head):
            raise BadInput(f"{where}: {len(values)} columns, not {len(head)}; mend that line")
        found += layout(Cells(where, dict(zip(head, values, strict=True))))
    return found


def _layout(path: Path, head: set[str]) -> Callable[[Cells], Iterator[Found]]:
    for columns, layout in LAYOUTS:
        if columns <= head:
            return layout
    known = "; ".join(" ".join(sorted(columns)) for columns, _ in LAYOUTS)
    raise BadInput(f"{path}: columns of no known layout; one of: {known}")


def sheet_of(name: str) -> str:
    """The data sheet that a table's device name stands for, "" if none: `a100_sxm`, `h100`."""
    slug = name.lower().replace("_", "-").removesuffix("-dgx")
    known = devices()
    for stem in (slug, slug.removesuffix("-sxm")):
        if stem in known:
            return stem
        likely = [sheet for sheet in known if sheet.startswith(f"{stem}-")]
        if likely:
            return min(likely, key=lambda sheet: ("sxm" not in sheet, sheet))
    return ""


def _matmul(cells: Cells) -> Iterator[Found]:
    dtype = _dtype(cells.text("dtype"))
    shape = tuple(cells.count(c) for c in ("m", "n", "k"))
    seconds = cells.time("us", 1e-6)
    group = f"matmul n={shape[1]} k={shape[2]}"
    yield _on(cells, "system", dtype) or Measured(
        "matmul", sheet_of(cells.text("system")), (*shape, dtype), seconds, group
    )


def _attention(cells: Cells) -> Iterator[Found]:
    phase = cells.text("phase")
    heads, kv_heads, dim = (cells.count(c) for c in ("heads", "kv_heads", "head_dim"))
    batch, new = cells.count("batch"), cells.count("isl")
    cached, seconds = cells.count("cached_step", 0), cells.time("us", 1e-6)
    gone = _on(cells, "system", "bfloat16")
    group = f"{phase} heads={heads} batch={batch}"
    sheet = sheet_of(cells.text("system"))
    if gone:
        yield gone
    elif phase == "context" and not cached:
        shape = (batch, new, heads, kv_heads, dim, "bfloat16")
        yield Measured("prefill", sheet, shape, seconds, group)
    elif phase == "generation" and new == 1:
        shape = (batch, cached + 1, kv_heads, dim, "bfloat16")
        yield Measured("decode", sheet, shape, seconds, group)
    elif phase in ("context", "generation"):
        yield LeftOut(cells.where, f"{phase} of {new} tokens over {cached} cached ones")
    else:
        raise BadInput(f"{cells.where}: column 'phase': {phase!r}; one of: context, generation")


def _layer(cells: Cells) -> Iterator[Found]:
    name, tp, m = cells.text("model"), cells.count("tp"), cells.count("num_tokens")
    times = {op: cells.time(f"{op}_ms", 1e-3) for op in LAYER if f"{op}_ms" in cells.line}
    gone = _on(cells, "device", "float16")
    config = model_of(name)
    if gone or config is None:
        yield gone or LeftOut(cells.where, f"model {name!r} is not in the dataset")
        return
    sheet = sheet_of(cells.text("device"))
    for op, seconds in times.items():
        operator, shape = LAYER[op](config, tp, m)
        group = f"layer {name} tp={tp}"
        yield Measured(operator, sheet, (*shape, "float16"), seconds, group)


def _collective(cells: Cells) -> Iterator[Found]:
    op = OPS.get(cells.text("op"), cells.text("op"))
    ranks, size = cells.count("gpus", 2), 2.0 * cells.count("message_size")
    seconds = cells.time("us", 1e-6)
    yield _on(cells, "system", "bfloat16") or Measured(
        "collective",
        sheet_of(cells.text("system")),
        (op, ranks, size),
        seconds,
        f"collective {op} {ranks}",
    )


def _network(cells: Cells) -> Iterator[Found]:
    op, ranks = cells.text("collective"), cells.count("num_workers")
    each, size = cells.count("devices_per_node"), float(cells.count("bytes"))
    seconds, network = cells.time("median_ms", 1e-3), cells.text("network")
    gone = _on(cells, "network", "bfloat16")
    if gone is None and each != ranks:
        gone = LeftOut(cells.where, "crosses nodes")
    if gone is None and op == "send_recv":
        gone = LeftOut(cells.where, "a single message, not a collective")
    group = f"network {network} {op} {ranks}"
    yield gone or Measured("collective", sheet_of(network), (op, ranks, size), seconds, group)


def _experts(cells: Cells) -> Iterator[Found]:
    dtype, how = _dtype(cells.text("dtype")), cells.text("distribution")
    names = ("hidden", "inter", "topk", "experts", "moe_tp", "moe_ep")
    shape = tuple(cells.count(name) for name in names)
    tokens, seconds = cells.count("tokens"), cells.time("us", 1e-6)
    gone = _on(cells, "system", dtype)
    if gone is None and shape[3] % shape[5]:
        gone = LeftOut(cells.where, "experts do not divide among their ranks")
    law = POWER.fullmatch(how)
    if gone is None and law is None:
        gone = LeftOut(cells.where, f"distribution {how!r}: balanced or power_law_… is known")
    power = float(law[1] or 0) if law else 0.0
    yield gone or Measured(
        "experts",
        sheet_of(cells.text("system")),
        (*shape, power, tokens, dtype),
        seconds,
        f"experts {shape} {how}",
    )


def _dtype(text: str) -> str:
    return DTYPES.get(text, text)


def _on(cells: Cells, column: str, dtype: str) -> LeftOut | None:
    """Why the row's device or dtype is not covered; None if it is."""
    name = cells.text(column)
    sheet = sheet_of(name)
    if not sheet:
        return LeftOut(cells.where, f"device {name!r} has no data sheet")
    if not device(sheet).units:
        return LeftOut(cells.where, f"the sheet of {sheet} gives no number of processors")
    if dtype not in BYTES or dtype not in device(sheet).peaks:
        return LeftOut(cells.where, f"{dtype} on {sheet}: no peak known")
    return None


LAYOUTS: tuple[tuple[frozenset[str], Callable[[Cells], Iterator[Found]]], ...] = (
    (frozenset({"system", "dtype", "m", "n", "k", "us"}), _matmul),
    (
        frozenset({"system", "phase", "heads", "kv_heads", "head_dim", "batch", "isl", "us"}),
        _attention,
    ),
    (
        frozenset({"system", "dtype", "hidden", "inter", "topk", "experts", "tokens", "us"}),
        _experts,
    ),
    (frozenset({"device", "model", "tp", "num_tokens"}), _layer),
    (frozenset({"system", "op", "gpus", "message_size", "us"}), _collective),
    (frozenset({"network", "collective", "num_workers", "bytes", "median_ms"}), _network),
)
