"""Tables of this machine's GPU, written where `workbench cost fit` reads them.

In comes a folder; out come its CSV files, one for each table or, where several run the same shapes,
for each kernel, and the rows that could not be measured.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import unwritten, write_text
from workbench.cost_model.rows import sheet_of

Row = Mapping[str, object]


class Left(NamedTuple):
    """Rows of one kernel that could not be measured, all for the same reason."""

    kernel: str
    why: str
    shapes: list[Row]

    def __str__(self) -> str:
        told = "; ".join(" ".join(f"{k}={v}" for k, v in shape.items()) for shape in self.shapes)
        return f"left out: {counted(len(self.shapes), 'row')} of {self.kernel}, {self.why}: {told}"


class Made(NamedTuple):
    """The files that were written, how many rows they hold, and what is left out."""

    files: list[Path]
    rows: int
    left_out: list[Left]


def measure(folder: Path, device: str, say: Callable[[str], None]) -> Made:
    """Measure and write. `device`: "cuda", or "cpu" for a walk without a figure. Raises BadInput
    where there is no GPU, or no folder can be made."""
    import torch

    from engine.kernels.experiments.device_tables import TABLES
    from engine.kernels.experiments.device_tables.timing import Refused

    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput("cost measure: no GPU here that torch can use; run it on a machine with one")
    called = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    system = sheet_of(called) or called
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise unwritten(folder, "the tables", fault) from None
    note = f"# Measured by `workbench cost measure` on {called} with torch {torch.__version__}.\n"
    made, count, refused = [], 0, []
    for name, table in TABLES.items():
        say(f"measuring {name.replace('_', ' ')}")
        rows: list[dict[str, object]] = []
        for row in table(device):
            if isinstance(row, Refused):
                refused.append(row)
            else:
                rows.append({"system": system, **row})
        count += len(rows)
        for stem, mine in _files(name, rows):
            path = folder / f"{stem}.csv"
            write_text(path, note + _text(mine), "the table")
            made.append(path)
    return Made(made, count, _alike(refused))


def _alike(refused: Iterable[tuple[Row, str, str]]) -> list[Left]:
    """Refused rows by kernel and reason."""
    found: dict[tuple[str, str], list[Row]] = {}
    for shape, kernel, why in refused:
        found.setdefault((kernel, why), []).append(shape)
    return [Left(*key, shapes) for key, shapes in found.items()]


def _files(name: str, rows: list[dict[str, object]]) -> list[tuple[str, list[dict[str, object]]]]:
    """A file for the table, or one for each kernel where several run the same shapes."""
    kernels = dict.fromkeys(str(row["kernel"]) for row in rows)
    if len(kernels) < 2:
        return [(name, rows)] if rows else []
    return [(f"{name}_{k}", [row for row in rows if row["kernel"] == k]) for k in kernels]


def _text(rows: list[dict[str, object]]) -> str:
    out = io.StringIO()
    table = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow(row | {"us": f"{row['us']:.4f}"})
    return out.getvalue()
