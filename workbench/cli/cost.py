"""`workbench cost fit`: constants of the operator cost model from measured tables of one device.

`workbench cost host`: host time of a serving engine's steps, from requests of a run."""

import argparse
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.names import counted, suggest
from engine.core.writing import write_text
from workbench.cli.output import check_place, print_json, say
from workbench.cli.run import changes

ABOUT = """fit the operator cost model to measured tables of a device

  workbench cost fit gemm.csv attention.csv nccl.csv --device h100-sxm --out h100.toml
  workbench check cost-model gemm.csv --constants h100.toml
  workbench run flover --set executor=modelled --set executor.constants=h100.toml
  workbench cost host requests.csv --set cluster.profile=FOLDER --out engine.toml
  workbench predict serving.toml --set engine.name=engine.toml"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["fit", "host"], help="fit constants")
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="CSV files of measured times")
    parser.add_argument("--device", default="", help="fit: rows of this device, by its data sheet")
    parser.add_argument("--out", required=True, metavar="FILE", help="write the constants here")
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
    from workbench.cli.cost_check import measured
    from workbench.cost_model.fit import fit, of
    from workbench.cost_model.leave_out import elsewhere
    from workbench.cost_model.writing import toml

    check_place(args.out)
    if args.what == "host":
        return _host(args)
    if args.device not in devices():
        raise BadInput(
            f"--device {args.device!r}: no data sheet; {suggest(args.device, devices())}"
        )
    rows, left_out = measured(args.tables)
    mine = [row for row in rows if row.device == args.device]
    if not mine:
        there = ", ".join(sorted({row.device for row in rows})) or "none known"
        raise BadInput(f"--device {args.device}: no row of the tables; they hold: {there}")
    say(f"fitting {counted(len(mine), 'row')}, four times with a quarter held out, then all")
    base = of(constants(args.base) if args.base else of_device(args.device), args.device)
    source = args.source or ", ".join(Path(path).name for path in args.tables)
    found = fit(mine, source, base)
    if args.kin:
        kin = tuple(name.strip() for name in args.kin.split(","))
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
