"""PyTorch's schedule files: a row for each rank, a cell for each action, empty cells for waiting.

Both forms are read and written: passes only, and passes with their transfers. What PyTorch has no
word for (the optimiser's step) is left out on the way there; its padding and the grouping of
overlapped pairs are left out on the way back.
"""

import csv
import io
import re

from engine.core.errors import BadInput
from engine.training.plan.actions import Kind, Plan, action, told

_PAIR = re.compile(r"\((.*)\)OVERLAP_F_B")


def to_csv(given: Plan) -> str:
    """The plan as PyTorch's `_load_csv` reads it: "compute_only", or "compute_comms" if lowered."""
    out = io.StringIO()
    rows = [[str(each) for each in rank if each.kind is not Kind.STEP] for rank in given.ranks]
    csv.writer(out).writerows(rows)
    return out.getvalue()


def from_csv(text: str) -> Plan:
    """The plan in a file that PyTorch's `_dump_csv` wrote. Raises BadInput with row and cell."""
    rows = []
    try:
        lines = list(csv.reader(io.StringIO(text)))
    except csv.Error as fault:
        raise BadInput(f"schedule file: not CSV ({fault}); mend it there") from None
    for number, cells in enumerate(lines, 1):
        row = []
        for place, cell in enumerate(cells, 1):
            pair = _PAIR.fullmatch(cell.strip())
            words = pair.group(1).split(";") if pair else [cell]
            try:
                row += [action(word) for word in words if word.strip()]
            except BadInput as fault:
                raise BadInput(f"schedule file, row {number}, cell {place}: {fault}") from None
        rows.append(row)
    if not any(rows):
        raise BadInput("schedule file: no actions in it; a row for each rank is needed")
    return told(rows, "schedule file")
