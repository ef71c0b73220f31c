"""The table of what is predicted how well, and on what: a summary of the two recorded reports.

In come the tables that `workbench check cost-model --held-out --save` and `workbench check
predictions --save` have written; out come rows for a person, and the place between two marks of a
Markdown file that holds them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.core.writing import write_text
from workbench.findings_table import between, marked

OPERATORS, RUNS = "cost/README.md", "predictions.md"
BEGIN, END = "<!-- predicted: workbench catalogue --predicted --markdown -->", "<!-- /predicted -->"
HEAD = ("what", "measured on", "rows", "median error", "device left out", "in the 90% interval")
NAMES = {
    "matmul": "products, 16 bits", "narrow": "products, 8 bits", "prefill": "attention of prompts",
    "decode": "attention of answers", "experts": "fused experts, 16 bits",
    "narrow_experts": "fused experts, 8 bits", "collective > 1 MiB": "collectives above 1 MiB",
}  # fmt: skip
Line = dict[str, str]


def rows() -> list[tuple[str, ...]]:
    """Rows of `HEAD`. An operator's error is its device's own fit's, groups of rows held out; a
    training run's is the mean of its rows. Raises BadInput without the records."""
    return [*_operators(_table(OPERATORS)), *_runs(_table(RUNS))]


def markdown() -> str:
    """The table as Markdown."""
    lines = [HEAD, tuple("---" for _ in HEAD), *rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put(path: Path) -> None:
    """Write the table between its marks in a Markdown file. Raises BadInput without a place."""
    text = marked(path, BEGIN, END)
    write_text(path, between(text, BEGIN, END, f"\n{markdown()}\n"), "the table")


def _table(name: str) -> list[Line]:
    """The rows of the first Markdown table of a record; columns of one name are told apart."""
    lines = [one for one in dataset(name).read_text("utf-8").splitlines() if one.startswith("| ")]
    cells = [[cell.strip() for cell in one.strip("|").split("|")] for one in lines]
    if len(cells) < 3:
        raise BadInput(f"{dataset(name)}: holds no table; write it by `workbench check … --save`")
    head: list[str] = []
    for word in cells[0]:
        head.append(word if word not in head else f"{word} again")
    return [dict(zip(head, each, strict=True)) for each in cells[2:] if len(each) == len(head)]


def _operators(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    found = []
    for key, name in NAMES.items():
        mine = [line for line in lines if line["operator"] == key]
        if not mine:
            continue
        inside = [line["covered"] for line in mine], [line["covered again"] for line in mine]
        held = " / ".join(part for part in map(_range, inside) if part)
        devices = ", ".join(line["device"].removesuffix("-sxm-80gb") for line in mine)
        errors = [_range(line[way] for line in mine) for way in ("own fit", "device left out")]
        count = sum(int(line["rows"]) for line in mine)
        found.append((name, devices, f"{count:,}", errors[0], errors[1] or "not tried", held))
    return found


def _runs(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """Training by device, its rows weighing alike; serving as recorded."""
    found = []
    training = [line for line in lines if line["runs"] == "training" and line["of"] != "all"]
    for device in dict.fromkeys(line["of"].rpartition(", ")[2] for line in training):
        mine = [line for line in training if line["of"].endswith(f", {device}")]
        count = sum(int(line["rows"]) for line in mine)
        error, inside = (
            sum(int(line["rows"]) * _number(line[key]) for line in mine) / count
            for key in ("mean", "in interval")
        )
        told = f"{len(mine)} groups of runs, {device}"
        found.append(("training steps (mean)", told, f"{count:,}", f"{error:.1f}%", "",
                      f"{inside:.0f}%"))  # fmt: skip
    for line in (one for one in lines if one["runs"] == "serving" and one["of"] != "all"):
        what = f"serving: {line['of'].partition(', ')[0]}"
        found.append((what, line["of"].rpartition(", ")[2], line["rows"], line["median"], "",
                      line["in interval"]))  # fmt: skip
    return found


def _number(text: str) -> float:
    return float(text.rstrip("%"))


def _range(texts: Iterable[str]) -> str:
    """Percentages from the lowest to the highest; "" without any."""
    told = sorted((text for text in texts if text), key=_number)
    if not told:
        return ""
    return told[0] if told[0] == told[-1] else f"{told[0].rstrip('%')} to {told[-1]}"
