"""`workbench check cost-model`: the cost model's error on measured tables; fitting it anew."""

from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import write_text
from workbench.cli.output import check_place, print_json, print_table, say

NAME = "cost-model"


def run(paths: list[str], fitted: str | None, as_json: bool) -> int:
    """Report on the tables' rows, with the shipped constants or with those `fitted` to a file."""
    from engine.hardware.cost_curves import curves
    from workbench.cost_model.check import reasons, report
    from workbench.cost_model.fit import fit, toml
    from workbench.cost_model.tables import LeftOut, Measured, table

    if not paths:
        raise BadInput(f"{NAME}: give one measured table or more: workbench check {NAME} TABLE.csv")
    check_place(fitted)
    rows = [row for path in paths for row in table(Path(path))]
    measured = [row for row in rows if isinstance(row, Measured)]
    left_out = reasons(row for row in rows if isinstance(row, LeftOut))
    if not measured:
        why = "; ".join(left_out) or "the tables hold no rows"
        raise BadInput(f"{NAME}: no row that the model covers ({why})")
    if fitted:
        say(f"fitting {counted(len(measured), 'row')}, four times, a quarter held out each")
        found = fit(measured, ", ".join(Path(path).name for path in paths))
        write_text(Path(fitted), toml(found), "the constants")
    else:
        found = curves()
    lines = report(measured, found)
    if as_json:
        facts = {"constants": found.source, "split": found.split}
        print_json({**facts, "rows": lines, "left_out": left_out})
    else:
        _print(lines)
        for why, count in left_out.items():
            print(f"left out: {counted(count, 'row')}, {why}")
        print(f"\nconstants: {found.source}\nsplit: {found.split}")
    return 0


def _print(lines: list[dict[str, Any]]) -> None:
    head = ("device", "operator", "rows", "median", "p90", "worst", "bias", "in interval")
    print_table(
        (*head, "predicted / measured − 1 at 5, 25, 50, 75, 95%"),
        [
            (
                line["device"],
                line["operator"],
                str(line["rows"]),
                *(f"{line[key]:.1%}" for key in ("median_error", "p90_error", "worst_error")),
                f"{line['bias']:+.1%}",
                f"{line['covered']:.0%}" if "covered" in line else "",
                " ".join(f"{value:+.1%}" for value in line["quantiles"].values()),
            )
            for line in lines
        ],
    )
    print("\nerrors are |predicted / measured − 1|; the interval is to hold nine in ten")
