"""Tables of measured runs, told apart by their columns, with a prediction beside each row.

In comes a CSV file (lines that begin with # are notes). Layouts: those of training runs
(`workbench.predictions.training_tables`), a run a line, and requests of one serving run
(`workbench.predictions.serving_tables`).
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.errors import BadInput
from workbench.cost_model.rows import Cells, LeftOut
from workbench.cost_model.tables import lines_of
from workbench.predictions import serving_tables, training_columns, training_tables
from workbench.predictions.score import Scored

Changes: TypeAlias = Mapping[str, Any]
Layout: TypeAlias = Callable[[Cells, Changes], Iterator[Scored | LeftOut]]
LAYOUTS: tuple[tuple[Callable[[set[str]], bool], Layout], ...] = training_tables.LAYOUTS


def scored(path: Path, changes: Changes) -> list[Scored | LeftOut]:
    """Every row of a table, scored or with why it is not. `changes`: knobs of every row that the
    table does not tell. Raises BadInput naming file, line and column."""
    lines = list(lines_of(path))
    if serving_tables.fits(set(lines[0].line)):
        return list(serving_tables.scored(lines, path, changes))
    found: list[Scored | LeftOut] = []
    for cells in lines:
        layout = next((each for fits, each in LAYOUTS if fits(set(cells.line))), None)
        if layout is None:
            raise BadInput(
                f"{path}: columns of no known layout; a training run needs a model (name or "
                "hidden, layers, heads), a device, gpus, seq_len, microbatch and one of: "
                f"{', '.join(training_columns.MEASURES)}; requests of a serving run need "
                f"{', '.join(names[0] for names in serving_tables.COLUMNS.values())}"
            )
        found += layout(cells, changes)
    return found
