"""`workbench cost fit`: constants of the operator cost model from measured tables of one device.

`workbench cost measure`: those tables, of the GPU of this machine.

`workbench cost host`: host time of a serving engine's steps, from requests of a run. `workbench
check cost-model`: how far the cost model is from measured tables, and how honest."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from engine.core.names import counted, suggest
from engine.core.writing import write_text
from workbench.cli.output import check_place, folder, print_json, print_table, say
from workbench.cli.run import changes

if TYPE_CHECKING:
    from workbench.cost_model.rows import Measured

NAME = "cost-model"
WAYS = ("own fit", "covered", "device left out", "covered")
MEANING = (
    "Median of abs(predicted / measured − 1), and the part of rows inside the 90% interval. "
    "Shipped: by the device's own constants, or its kin's. Own fit: groups of its rows held "
    "out, with the interval that the others show. Device left out: constants from other devices "
    "alone; the interval is the scatter of parts held out of those and a whole device's shift, as "
    "each of those shows it by constants of another. In the mean: every row of this table alike."
)
HEAD = ("device", "operator", "rows", "median", "p90", "worst", "bias", "in interval")

ABOUT = """fit the operator cost model to measured tables of a device

  workbench cost measure --out mine                      on a machine with a GPU: mine/*.csv
  workbench cost fit gemm.csv attention.csv nccl.csv --device h100-sxm --out h100.toml
  workbench check cost-model gemm.csv --constants h100.toml
  workbench run flover --set executor=modelled --set executor.constants=h100.toml
  workbench cost host requests.csv --set cluster.profile=FOLDER --out engine.toml
  workbench predict serving.toml --set engine.name=engine.toml"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", choices=["fit", "host", "measure"], help="fit constants, or measure tables to fit"
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="CSV files of measured times")
    parser.add_argument("--device", default="", help="fit: rows of this device, by its data sheet")
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="write the constants, or the folder of tables, here",
    )
    parser.add_argument(
        "--base",
        metavar="NAME",
        default="",
        help="constants of what the tables do not hold (default: the device's, or its kin's)",
    )
    parser.add_argument(
        "--kin", default="", metavar="A,B", help="devices without own constants that take these; "
        "their interval is what leaving out each device of the tables shows",
    )  # fmt: skip
    parser.add_argument("--source", default="", help="what the tables are, said in the file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE",
        help="host: what the table does not tell of its run",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.hardware import devices
    from engine.hardware.cost.constants import constants, of_device
    from workbench.cost_model.fit import fit, of
    from workbench.cost_model.leave_out import elsewhere
    from workbench.cost_model.writing import toml

    if args.what == "measure":
        return _measure(args)
    check_place(args.out)
    if not args.tables:
        raise BadInput(f"cost {args.what}: give one measured table or more")
    if args.what == "host":
        return _host(args)
    if args.device not in devices():
        raise BadInput(
            f"--device {args.device!r}: no data sheet; {suggest(args.device, devices())}"
        )
    kin = tuple(name.strip() for name in args.kin.split(",")) if args.kin else ()
    unknown = next((name for name in kin if name not in devices()), None)
    if unknown is not None:
        raise BadInput(f"--kin {unknown!r}: no data sheet; {suggest(unknown, devices())}")
    rows, left_out = measured(args.tables)
    mine = [row for row in rows if row.device == args.device]
    if not mine:
        there = ", ".join(sorted({row.device for row in rows})) or "none known"
        raise BadInput(f"--device {args.device}: no row of the tables; they hold: {there}")
    say(f"fitting {counted(len(mine), 'row')}, four times with a quarter held out, then all")
    base = of(constants(args.base) if args.base else of_device(args.device), args.device)
    source = args.source or ", ".join(Path(path).name for path in args.tables)
    found = fit(mine, source, base)
    if kin:
        wide = elsewhere(rows, found)
        found = found.model_copy(update={"kin": kin, "elsewhere": wide})
    write_text(Path(args.out), toml(found), "the constants")
    if args.json:
        intervals = {name: each.model_dump() for name, each in found.intervals.items()}
        print_json({"device": args.device, "intervals": intervals, "left_out": left_out})
        return 0
    for name, each in found.intervals.items():
        print(f"{name:10}  held out, predicted / measured: {spread(each.low, each.high)}")
    for why, count in left_out.items():
        print(f"left out: {counted(count, 'row')}, {why}")
    return 0


def _measure(args: argparse.Namespace) -> int:
    from workbench.cost_model.measuring import measure

    if args.tables:
        raise BadInput("cost measure: takes no table, it writes them; leave TABLE away")
    made = measure(folder(args.out), "cuda", say)
    for left in made.left_out:
        say(left)
    refused = sum(len(left.shapes) for left in made.left_out)
    say(f"{counted(made.rows, 'row')} measured, {refused} left out")
    tables = [str(path) for path in made.files]
    if args.json:
        print_json({"tables": tables, "left_out": [left._asdict() for left in made.left_out]})
    else:
        print("\n".join(tables))
    return 0


def _host(args: argparse.Namespace) -> int:
    from workbench.predictions.host_fit import host, toml

    if len(args.tables) != 1:
        raise BadInput("cost host: give one table of requests")
    found, error = host(Path(args.tables[0]), changes(args.set))
    write_text(Path(args.out), toml(found), "the constants")
    if args.json:
        print_json({"per_step": found.per_step, "tpot_error": error})
    else:
        print(f"{found.per_step * 1e6:.0f} us of host time a step; mean TPOT off by {error:+.1%}")
    return 0


def spread(low: float, high: float) -> str:
    """An interval of logarithms as percent."""
    from math import expm1

    return f"{expm1(low):+.1%} to {expm1(high):+.1%}"


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


def judge(paths: list[str], given: str, fitted: bool, as_json: bool, save: str | None) -> int:
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
    used = {row.device: found(row.device) for row in rows}
    if as_json:
        told = {sheet: each.slug for sheet, each in used.items()}
        print_json({"constants": told, "rows": lines, "left_out": left_out})
    else:
        _print(lines, fitted)
        for why, count in left_out.items():
            print(f"left out: {counted(count, 'row')}, {why}")
        for sheet, each in sorted(used.items()):
            print(f"{sheet}: constants {each.slug} ({each.source})")
    if save is not None:
        write_text(Path(save), _markdown(lines, paths, fitted), "the table")
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
    ways = ("covered", "own_covered", "left_out_covered")
    means = (_percent(_mean(lines, way), 0) for way in ways)
    shipped, own, away = means
    more_cells = ("", own, "", away) if fitted else ()
    rows.append(("in the mean", "", "", "", shipped, *more_cells))
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


def _mean(lines: Sequence[Mapping[str, Any]], key: str) -> float | None:
    told = [line[key] for line in lines if key in line]
    return sum(told) / len(told) if told else None


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
