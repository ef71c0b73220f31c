"""`workbench sweep`: a study at every point of a grid of knobs, here or on a Ray cluster."""

import argparse
import csv
import io
import os
from pathlib import Path
from typing import Any

from engine.core.writing import json_text, write_text
from workbench.cli.output import check_place, print_json, print_table, say, seconds, seed
from workbench.cli.run import changes

ABOUT = """run a study at every point of a grid of knobs

  workbench sweep flover --over batching=static_batch,temporal_fusion --over workload.rate=4,8
  workbench sweep flover --over workload.rate=4,8 --ray auto   on the Ray cluster this machine is in

The table has the figures of the study's first view, with their units, in the order typed; a point
that fails is a row that says why, and the others go on. Exit code 0: every point has figures;
1: some point failed; 2: bad input."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the study")
    parser.add_argument("--over", action="append", default=[], metavar="KNOB=A,B,C", required=True,
                        help="what to vary; several make a grid")  # fmt: skip
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE",
                        help="a knob of every point")  # fmt: skip
    parser.add_argument("--preset", default="", help="start from one of the study's presets")
    parser.add_argument("--seed", type=seed, default=0, help="the runs' seed (default 0)")
    parser.add_argument("--figure", action="append", default=[], metavar="NAME",
                        help="a column (default: time and the first view's figures)")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=0, metavar="N",
                        help="points at a time (default: one a processor)")  # fmt: skip
    parser.add_argument("--limit", type=seconds, default=600.0, metavar="SECONDS",
                        help="longest that a point may take (default 600)")  # fmt: skip
    parser.add_argument("--ray", nargs="?", const="", metavar="ADDRESS",
                        help="run on Ray, here or on the cluster at ADDRESS (or auto)")  # fmt: skip
    parser.add_argument("--save", metavar="FILE", help="keep the rows there (*.json or *.csv)")
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="print JSON")
    printed.add_argument("--csv", action="store_true",
                         help="print CSV: every figure, in seconds, bytes and shares")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from workbench.grid import Row, grid, shown, sweep

    points = grid(args.over)
    check_place(args.save)
    fleet = _fleet(args)
    rows: dict[int, Row] = {}
    how: dict[str, Any] = {"preset": args.preset, "changes": changes(args.set), "seed": args.seed}
    found = sweep(fleet, args.slug, points, figures=args.figure, **how)
    for number, row in found:
        rows[number] = row
        told = row.failed or f"{row.figures.get('took', 0.0):.1f} s"
        where = ", ".join(f"{name}={value}" for name, value in row.point.items())
        say(f"{len(rows)} of {len(points)}: {where}: {told}")
    ordered = [rows[number] for number in sorted(rows)]
    plain = [
        {"point": r.point, "figures": r.figures, "headline": r.headline, "failed": r.failed}
        for r in ordered
    ]
    names = shown(ordered, args.figure)
    if args.json:
        print_json({"slug": args.slug, "seed": args.seed, "rows": plain})
    elif args.csv:
        print(_csv(ordered), end="")
    else:
        _table(ordered, names)
    if args.save:  # last: a full disk takes nobody's rows away
        is_csv = args.save.endswith(".csv")
        write_text(Path(args.save), _csv(ordered) if is_csv else _json(plain), "the rows")
    return 1 if any(row.failed for row in ordered) else 0


def _fleet(args: argparse.Namespace) -> Any:
    if args.ray is None:
        from engine.distributed.fleet import Processes

        return Processes(args.jobs or os.cpu_count() or 1, args.limit)
    from engine.distributed.ray_fleet import RayFleet

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return RayFleet(args.ray, args.limit)


def _json(rows: list[dict[str, Any]]) -> str:
    return json_text(rows, indent=2) + "\n"


def _csv(rows: list[Any]) -> str:
    """A line for each point: its knobs, every figure in seconds, bytes and shares, and why none."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    knobs = list(rows[0].point) if rows else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*knobs, *names, "failed"])
    for row in rows:
        told = [row.figures.get(name, "") for name in names]
        writer.writerow([*(row.point[knob] for knob in knobs), *told, row.failed])
    return text.getvalue()


def _table(rows: list[Any], names: list[str]) -> None:
    from workbench.grid import cell

    knobs = list(rows[0].point) if rows else []
    head = [*knobs, *names, "failed"]
    cells = [
        [str(row.point[knob]) for knob in knobs]
        + [cell(row, name) for name in names]
        + [row.failed]
        for row in rows
    ]
    if not any(row.failed for row in rows):
        head, cells = head[:-1], [row[:-1] for row in cells]
    print_table(head, cells)
