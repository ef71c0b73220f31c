"""`workbench check cost-model`: how far the cost model is from measured tables, and how honest."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import write_text
from workbench.cli.output import check_place, print_json, print_table, say

if TYPE_CHECKING:
    from workbench.cost_model.rows import Measured

NAME = "cost-model"
WAYS = ("own fit", "covered", "device left out", "covered")
MEANING = (
    "Median of abs(predicted / measured − 1), and the part of rows inside the 90% interval. "
    "Shipped: by the device's own constants, or its kin's. Own fit: groups of its rows held "
    "out, with the interval that the others show. Device left out: constants and interval from "
    "other devices alone; where only one other was measured, no interval is known and all is in."
)
HEAD = ("device", "operator", "rows", "median", "p90", "worst", "bias", "in interval")


def measured(paths: Sequence[str]) -> tuple[list["Measured"], Mapping[str, int]]:
    """The rows of all tables that the model covers, and why others are left out, with counts.

    Raises BadInput where there is none.
    """
    from workbench.cost_model.check import reasons
    from workbench.cost_model.rows import LeftOut, Measured
    from workbench.cost_model.tables import table

    rows = [row for path in paths for row in table(Path(path))]
    left_out = reasons(row for row in rows if isinstance(row, LeftOut))
    covered = [row for row in rows if isinstance(row, Measured)]
    if not covered:
        why = "; ".join(left_out) or "the tables hold no rows"
        raise BadInput(f"{NAME}: no row that the model covers ({why})")
    return covered, left_out


def run(paths: list[str], given: str, fitted: bool, as_json: bool, save: str | None) -> int:
    """Report on the tables' rows, by the constants given or each device's own; `fitted` too by
    constants fitted on the tables themselves, parts of them held out. `save`: as Markdown, there.
    """
    from engine.hardware.cost.constants import constants, of_device
    from workbench.cost_model.check import report

    if not paths:
        raise BadInput(f"{NAME}: give one measured table or more: workbench check {NAME} TABLE.csv")
    check_place(save)
    rows, left_out = measured(paths)

    def found(sheet: str) -> Any:
        return constants(given, sheet) if given else of_device(sheet)

    lines = report(rows, found)
    if fitted:
        _held_out(rows, lines)
    if save is not None:
        write_text(Path(save), _markdown(lines, paths, fitted), "the table")
    used = {row.device: found(row.device) for row in rows}
    if as_json:
        told = {sheet: each.slug for sheet, each in used.items()}
        print_json({"constants": told, "rows": lines, "left_out": left_out})
        return 0
    _print(lines, fitted)
    for why, count in left_out.items():
        print(f"left out: {counted(count, 'row')}, {why}")
    for sheet, each in sorted(used.items()):
        print(f"{sheet}: constants {each.slug} ({each.source})")
    return 0


def _held_out(rows: Sequence["Measured"], lines: list[dict[str, Any]]) -> None:
    """Add to each line the errors of the device's own fit and of the fit of the others."""
    from workbench.cost_model.leave_out import both

    say("fitting each device with a quarter held out, four times, and the others without it")
    told = both(rows)
    for line in lines:
        line |= told.get((line["device"], line["operator"]), {})


def _markdown(lines: list[dict[str, Any]], paths: Sequence[str], fitted: bool) -> str:
    """The report as a file that says which command wrote it."""
    names = " ".join(Path(path).name for path in paths)
    more = WAYS if fitted else ()
    head = ("device", "operator", "rows", "shipped", "inside", *more)
    asked = " --held-out" if fitted else ""
    rows = [
        (
            line["device"],
            line["operator"],
            f"{line['rows']}",
            _percent(line["median_error"]),
            _percent(line.get("covered"), 0),
            *(_told(line) if fitted else ()),
        )
        for line in lines
    ]
    table_rows = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        [
            f"Written by `workbench check {NAME} {names}{asked} --save FILE`.",
            "",
            MEANING,
            "",
            *(f"| {' | '.join(row)} |" for row in table_rows),
            "",
        ]
    )


def _print(lines: list[dict[str, Any]], fitted: bool) -> None:
    more = WAYS if fitted else ()
    print_table(
        (*HEAD, *more, "predicted / measured − 1 at 5, 25, 50, 75, 95%"),
        [
            (
                line["device"],
                line["operator"],
                str(line["rows"]),
                *(_percent(line[key]) for key in ("median_error", "p90_error", "worst_error")),
                f"{line['bias']:+.1%}",
                _percent(line.get("covered"), 0),
                *(_told(line) if fitted else ()),
                " ".join(f"{value:+.1%}" for value in line["quantiles"].values()),
            )
            for line in lines
        ],
    )
    print("\nerrors are |predicted / measured − 1|; the interval is to hold nine in ten")


def _told(line: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        _percent(line.get(f"{way}_{what}"), places)
        for way in ("own", "left_out")
        for what, places in (("error", 1), ("covered", 0))
    )


def _percent(value: float | None, places: int = 1) -> str:
    return "" if value is None else f"{value:.{places}%}"
