"""Tables of this machine's GPU, written where `workbench cost fit` reads them.

In comes a folder; out come its CSV files, one for each table and, of attention, for each kernel.
"""

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.writing import unwritten, write_text
from workbench.cost_model.rows import sheet_of

Row = Mapping[str, object]


def measure(folder: Path, device: str, say: Callable[[str], None]) -> list[Path]:
    """Measure and write. `device`: "cuda", or "cpu" for a walk without a figure. Raises BadInput
    where there is no GPU, or no folder can be made."""
    import torch

    from engine.kernels.experiments.device_tables import TABLES

    if device == "cuda" and not torch.cuda.is_available():
        raise BadInput("cost measure: no GPU here that torch can use; run it on a machine with one")
    called = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    system = sheet_of(called) or called
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise unwritten(folder, "the tables", fault) from None
    note = f"# Measured by `workbench cost measure` on {called} with torch {torch.__version__}.\n"
    made = []
    for name, table in TABLES.items():
        say(f"measuring {name.replace('_', ' ')}")
        for stem, rows in _files(name, [{"system": system, **row} for row in table(device)]):
            path = folder / f"{stem}.csv"
            write_text(path, note + _text(rows), "the table")
            made.append(path)
    return made


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
