"""What claims came to over several trainings, as recorded in `trainings.json` of the shipped data.

Written by `workbench check --trainings 5 --save`. Where it has a figure over trainings that was
judged at no smaller a size, that one heads the claim in tables of findings: it answers the wider
question. What the shipped model alone came to stays in `findings.json`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import parse_json, read_bytes
from engine.core.paths import dataset
from workbench import findings_table

RECORD = "trainings.json"
KEPT = ("slug", "claim", "grade", "fast", "models", "once", "wanted", "trainings", "figure",
        "reported", "needed", "holds", "finding", "lacks", "machine")  # fmt: skip
Row = dict[str, Any]


@lru_cache(maxsize=1)
def recorded() -> tuple[Row, ...]:
    """A row for each claim that rests on models taught here; none where nothing is recorded."""
    try:
        path = dataset(RECORD)
    except BadInput:
        return ()
    return tuple(parse_json(read_bytes(path, "text_bytes"), path))


def of(slug: str, claim: str) -> Row | None:
    """What is recorded of a claim over trainings."""
    return next((r for r in recorded() if (r["slug"], r["claim"]) == (slug, claim)), None)


def record(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write rows into the record at `path`: theirs replaced, the others as they were. One that is
    judged stays where too few trainings are kept here to judge it again."""
    there = findings_table.before(path, KEPT)
    judged = {claim for claim, row in there.items() if row["figure"]}
    new = [row for row in rows if row["figure"] or (row["slug"], row["claim"]) not in judged]
    findings_table.record(new, path, KEPT)


def headlines(rows: Sequence[Row] | None = None, over: Sequence[Row] | None = None) -> list[Row]:
    """Recorded findings, that over trainings in the place of the shipped model's where there is one
    of no smaller a size. Whether a check holds stays the shipped model's."""
    found = []
    wider = {(row["slug"], row["claim"]): row for row in (recorded() if over is None else over)}
    for row in findings_table.recorded() if rows is None else rows:
        other = wider.get((row["slug"], row["claim"]))
        if other is not None and _heads(other, row):
            names = ("figure", "finding", "fast", "machine")
            row = {**row, **{name: other[name] for name in names}}
        found.append(row)
    return found


def _heads(over: Row, alone: Row) -> bool:
    """Whether what came out over trainings was judged at no smaller a size than of one."""
    return bool(over["figure"]) and bool(alone["fast"] or not over["fast"])


def told(over: Sequence[Row] | None = None, alone: Sequence[Row] | None = None) -> str:
    """How many of the claims about taught models are judged over trainings, and which of them came
    to another finding than of the shipped training alone; "" where none are recorded."""
    rows = recorded() if over is None else over
    if not rows:
        return ""
    known = {(row["slug"], row["claim"]): row for row in alone or findings_table.recorded()}
    had = [(row, known[row["slug"], row["claim"]]) for row in rows if row["figure"]]
    heads = [(row, one) for row, one in had if _heads(row, one)]
    small, part = len(had) - len(heads), sum(bool(row["once"]) for row, _ in had)
    moved = [
        f"{row['slug']} / {row['claim']} ({one['finding']} of the shipped training, "
        f"{row['finding']} of five)"
        for row, one in heads
        if one["finding"] != row["finding"]
    ]
    parts = [
        f"Claims about models taught here: {len(rows)}. Judged over five trainings: {len(had)}"
    ]
    if part:
        parts.append(f"of them with one of two models trained again: {part}")
    if small:
        parts.append(f"at the small size alone, which heads no table: {small}")
    came = f"{'; '.join(moved)}." if moved else "none."
    split = [
        f"{row['slug']} / {row['claim']} (it says yes of "
        f"{sum(one['holds'] for one in row['trainings'])} of the five)"
        for row, one in heads
        if one["finding"] == row["finding"] and one["holds"] and not row["holds"]
    ]
    if split:
        came += (
            " The same finding, yet no yes, since what the check asks for besides its figure did "
            f"not hold of each training: {'; '.join(split)}."
        )
    return f"{', '.join(parts)}. Another finding than of the shipped training alone: {came}"


def notes() -> list[str]:
    """What stands under a table of findings: of trainings, and of machines."""
    return [
        note for note in (told(), findings_table.told_by_machine(findings_table.recorded())) if note
    ]
