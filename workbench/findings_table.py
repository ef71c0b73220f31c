"""The table of findings: what every claim came to, as recorded, counted by family.

The record is `findings.json` of the shipped data, written by `workbench check --save`; a test holds
it to what the claims state, so that reading it needs no study.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import read_text
from engine.core.paths import dataset
from engine.core.writing import json_text, write_text
from workbench.catalogue import catalogue
from workbench.finding import FINDINGS, Figure, Reach, Reported, reach

RECORD = "findings.json"
BEGIN, END = "<!-- findings: workbench catalogue --findings --markdown -->", "<!-- /findings -->"
BUILT = "<!-- built -->", "<!-- /built -->"  # between them: how many systems stand
KEPT = ("slug", "claim", "grade", "timed", "figure", "needed", "reported", "holds", "finding",
        "machine", "fast")  # fmt: skip
OTHER = ("machine", "figure", "needed", "holds", "finding", "fast")  # of each other machine
ALONE = "in direction only"  # reproduced, of a paper's figure that has a sign and no size
KINDS = ("reproduced", ALONE, *(name for name in FINDINGS if name != "reproduced"))
HEAD = ("family", "systems", "claims", *KINDS, "in small", "does not hold")


def recorded() -> list[dict[str, Any]]:
    """A row for each claim that was recorded: those of `KEPT`, and the `others` of a timed one."""
    try:
        rows: list[dict[str, Any]] = json.loads(dataset(RECORD).read_text("utf-8"))
    except BadInput:
        return []
    return rows


@lru_cache(maxsize=512)
def elsewhere(slug: str, claim: str, machine: str = "") -> tuple[dict[str, Any], ...]:
    """What a timed claim came to, as recorded, on machines other than that one, or on all."""
    row = next((r for r in recorded() if (r["slug"], r["claim"]) == (slug, claim)), None)
    return tuple(on_others(row, machine))


def record(rows: Iterable[Mapping[str, Any]], path: Path, names: Sequence[str] = KEPT) -> None:
    """Write rows of verdicts into the record at `path`: theirs replaced, the others as they were;
    `names`: what is kept of each. A timed one keeps what it came to on other machines beside it.

    Raises BadInput for a file that is no record, and where it cannot be written.
    """
    kept = before(path, names)
    for row in rows:
        own = row["slug"], row["claim"]
        new = {name: row[name] for name in names}
        if new.get("timed") and (there := others(new, kept.get(own))):
            new["others"] = there
        kept[own] = new
    order = {entry.slug: place for place, entry in enumerate(catalogue())}
    found = sorted(kept.values(), key=lambda row: order.get(row["slug"], len(order)))
    lines = ",\n".join(json_text(row, ensure_ascii=False) for row in found)
    write_text(path, f"[\n{lines}\n]\n", "the findings")


def before(path: Path, names: Sequence[str] = KEPT) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of the record at `path` by slug and claim; none without a file. Raises BadInput for
    what is no record of rows with `names`, of one training or over several."""
    try:
        rows = json.loads(read_text(path)) if path.is_file() else []
        if any(("trainings" in row) != ("trainings" in names) for row in rows):
            raise KeyError("trainings")
        return {(row["slug"], row["claim"]): row for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(
            f"{path}: holds no findings; give a new file or one made by --save"
        ) from None


def reached(row: dict[str, Any]) -> Reach | None:
    """How a recorded claim's figure reaches the paper's; None where it does not."""
    if row["finding"] != "reproduced" or row["figure"] is None or row["reported"] is None:
        return None
    found = reach(Figure.of_row(row["figure"]), Reported(**row["reported"]))
    return "direction" if found and row["grade"] == "direction" else found


def kind(row: dict[str, Any]) -> str:
    """The column of `KINDS` that a recorded claim is counted in."""
    return ALONE if reached(row) == "direction" else str(row["finding"])


def findings_of(slug: str, rows: Sequence[dict[str, Any]]) -> Counter[str]:
    """How many claims of a system came to each of `KINDS`."""
    return Counter(kind(row) for row in rows if row["slug"] == slug)


def by_family(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row of `HEAD` for each family with recorded claims, and one for all."""
    of = {entry.slug: entry.family for entry in catalogue()}
    families: dict[str, list[dict[str, Any]]] = {}
    known = [row for row in rows if row["slug"] in of]
    for row in known:
        families.setdefault(of[row["slug"]], []).append(row)
    ordered = {
        family: families[family] for family in dict.fromkeys(of.values()) if family in families
    }
    return [_line(family, those) for family, those in {**ordered, "all": known}.items()]


def _line(family: str, rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Systems, claims, claims by finding, those reproduced in direction only beside the others;
    how many were judged at the small setting alone, and of how many the check said no."""
    found = Counter(map(kind, rows))
    counts = [len({row["slug"] for row in rows}), len(rows), *(found[name] for name in KINDS)]
    counts += [sum(bool(row["fast"]) for row in rows), sum(not row["holds"] for row in rows)]
    return (family, *map(str, counts))


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table by family as Markdown."""
    lines = [HEAD, ("---", *("--:" for _ in HEAD[1:])), *by_family(rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put(path: Path, rows: Sequence[dict[str, Any]], below: str = "") -> None:
    """Write the table between its two marks in a Markdown file, `below` under it, and how many
    systems are built where it has marks for that. Raises BadInput without a place for the table."""
    text = marked(path, BEGIN, END)
    systems = catalogue()
    built = f"{sum(each.built for each in systems)} of the {len(systems)} systems"
    text = between(text, *BUILT, built)
    more = f"\n{below}\n" if below else ""
    write_text(path, between(text, BEGIN, END, f"\n{markdown(rows)}\n{more}"), "the table")


def marked(path: Path, begin: str, end: str) -> str:
    """The text of a file with a place for a table. Raises BadInput where it has none."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path}: no text in UTF-8 ({fault}); give a Markdown file") from None
    if begin not in text or end not in text:
        raise BadInput(f"{path}: no place for the table; put {begin} and {end} where it belongs")
    return text


def between(text: str, begin: str, end: str, new: str) -> str:
    """The text with `new` between two marks; as it is without them."""
    head, mark, rest = text.partition(begin)
    _, close, after = rest.partition(end)
    return f"{head}{begin}{new}{end}{after}" if mark and close else text


def findings_line(counts: Mapping[str, int]) -> str:
    """What a system's claims came to, in words; "" where nothing was recorded."""
    told = [f"{counts[name]} {name}" for name in KINDS if counts.get(name)]
    return f"Findings: {', '.join(told)}" if told else ""


def others(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What `before`, the record so far, has of machines other than that of `row`, by their name."""
    if before is None:
        return []
    had = [before, *before.get("others", ())]
    kept = [{name: one[name] for name in OTHER} for one in had if one["machine"] != row["machine"]]
    return sorted(kept, key=lambda one: str(one["machine"]))


def on_others(row: Mapping[str, Any] | None, machine: str) -> list[dict[str, Any]]:
    """What a recorded timed claim came to on machines other than `machine`."""
    if row is None or not row["timed"]:
        return []
    return others({"machine": machine}, row)


def told_by_machine(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many timed claims are recorded on more than one machine and which of them came to another
    finding there; "" where none is."""
    timed = [row for row in rows if row["timed"]]
    wide = [[row, *row["others"]] for row in timed if row.get("others")]
    if not wide:
        return ""
    moved = [
        f"{had[0]['slug']} / {had[0]['claim']} ({', '.join(map(_came, had))})"
        for had in wide
        if len({one["finding"] for one in had}) > 1
    ]
    return (
        f"Timed claims: {len(timed)}, recorded on more than one machine: {len(wide)}. "
        f"Another finding on another machine: {'; '.join(moved) or 'none'}."
    )


def _came(row: Mapping[str, Any]) -> str:
    figure = Figure.of_row(row["figure"]) if row["figure"] else None
    size = f" {figure.value:.3g}" if figure else ""
    return f"{row['finding']}{size} on {row['machine']}"
