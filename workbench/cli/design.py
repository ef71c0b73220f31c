"""`workbench design`: which fleet keeps a service-level objective, at what cost, and its flags."""

import argparse
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from workbench.cli.output import print_json, print_table, say, say_left_out, seconds
from workbench.cli.run import changes, list_knobs, only_with

if TYPE_CHECKING:
    from workbench.fleet_search.asked import FleetSearch
    from workbench.fleet_search.search import Searched

COUNT = 1000  # requests of a trace

ABOUT = """search fleet designs under a service-level objective

  workbench design --set model=llama-3.1-8b --set devices=8 --set workload.rate=60
  workbench design fleet.toml --trace requests.csv --speed 4 --set slo.ttft=0.5 --set slo.tpot=0.03
  workbench design --set price=2.5 --set budget=20         dollars an hour in place of devices

Replicas, tensor ranks, prefill and decode pools, routers and limits on a step's tokens are played
on the virtual clock, on all processors. Out come the Pareto table of goodput, cost and watts, what
binds where nothing keeps the objective, and the winner's launch flags. Ctrl-C prints what is known.

Exit code 0: some design keeps the objective; 1: none does; 2: bad input."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="SEARCH.toml", nargs="?", help="what is asked")
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="requests: Azure, BurstGPT, Mooncake, ShareGPT or vLLM's benchmark",
    )
    parser.add_argument("--count", type=int, default=COUNT,
                        help="requests taken of it (default %(default)s; 0: all)")  # fmt: skip
    parser.add_argument("--speed", type=float, default=1.0, help="it arrives so many times as fast")
    parser.add_argument("--lenient", action="store_true", help="leave its bad lines out")
    parser.add_argument("--jobs", type=int, default=0, metavar="N",
                        help="designs at a time (default: one a processor)")  # fmt: skip
    parser.add_argument("--limit", type=seconds, default=600.0, metavar="SECONDS",
                        help="longest that a design may take (default 600)")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="list every design, not the front alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--knobs", action="store_true", help="list the knobs and stop")


def run(args: argparse.Namespace) -> int:
    from engine.distributed.fleet import Processes
    from workbench.fleet_search.search import search

    asked = described(args)
    if args.knobs:
        return list_knobs(asked, args.json)
    found, stopped = None, False
    with closing(search(asked, Processes(args.jobs or os.cpu_count() or 1, args.limit))) as steps:
        try:
            for found in steps:
                played = len(found.rows) + len(found.again) + len(found.paced)
                say(f"{played} of {found.total} ({found.stage})")
        except KeyboardInterrupt:
            stopped = True
    if found is None or not found.rows:
        if stopped:
            say("stopped before any design was played")
            raise KeyboardInterrupt
        raise BadInput("design: no design could be played")
    if args.json:
        print_json(_json(found, stopped))
    else:
        _print(found, args.all, stopped)
    return 0 if found.winner is not None else 1


def described(args: argparse.Namespace) -> "FleetSearch":
    """What file and flags ask. Raises BadInput."""
    from engine.core.config import from_dict, update
    from engine.inference.workloads.trace import FromTrace
    from workbench.fleet_search.asked import FleetSearch
    from workbench.predictions.kinds import fields_of

    asked = FleetSearch()
    if args.file:
        try:
            asked = from_dict(FleetSearch, fields_of(Path(args.file)))
        except BadInput as fault:
            raise BadInput(f"{args.file}: {fault}") from None
    only_with(
        "--trace", bool(args.trace), count=args.count != COUNT, speed=args.speed != 1.0,
        lenient=args.lenient,
    )  # fmt: skip
    if args.trace:
        trace = {"kind": "trace", "file": args.trace, "count": args.count, "speed": args.speed}
        trace |= {"lenient": args.lenient}
        asked = update(asked, {"workload": trace})
    asked = update(asked, changes(args.set))
    if isinstance(asked.workload, FromTrace):
        say_left_out(asked.workload.read())  # what is wrong is said before workers start
    return asked


def _print(found: "Searched", every: bool, stopped: bool) -> None:
    from workbench.fleet_search.flags import launches
    from workbench.fleet_search.told import HEAD, asked_of, cells, notes, verdict

    if stopped:
        print("stopped; of what was played so far:\n")
    print(f"asked: {asked_of(found)}\n{verdict(found)}\n")
    rows = [row for row in found.rows if not row.failed] if every else found.front()
    kept = [row.meets(found.asked.slo) for row in rows]
    head = (*HEAD[1:], HEAD[0])  # the longest last, where the terminal wraps it
    marks = ["*" if each else "" for each in kept]
    lines = [(mark, *cells(found, row)[1:], cells(found, row)[0])
             for mark, row in zip(marks, rows, strict=True)]  # fmt: skip
    print_table(("", *head), lines)
    print("\n* keeps the objective" if any(kept) else "")
    for note in notes(found):
        print(f"note: {note}")
    winner = found.winner
    if winner is not None:
        for engine, told in launches(found.asked, winner.design).items():
            print(f"\nstart it with {engine}:")
            for line in told:
                print(f"  {line}")


def _json(found: "Searched", stopped: bool) -> dict[str, Any]:
    from dataclasses import asdict

    from engine.core.config import to_dict
    from workbench.fleet_search.flags import launches
    from workbench.fleet_search.told import notes, verdict

    slo, winner, front = found.asked.slo, found.winner, found.front()

    def told(row: Any) -> dict[str, Any]:
        return {
            "design": asdict(row.design), "devices": row.design.devices, "figures": row.figures,
            "meets": row.meets(slo), "front": row in front, "failed": row.failed,
        }  # fmt: skip

    return {
        "grade": "modelled",
        "asked": to_dict(found.asked),
        "stopped": stopped,
        "verdict": verdict(found),
        "winner": told(winner) if winner else None,
        "again": [told(row) for row in found.again],
        "paced": [
            {"pace": pace, **told(row)} for pace, row in zip(found.paces, found.paced, strict=False)
        ],
        "alone": told(found.alone) if found.alone else None,
        "designs": [told(row) for row in found.rows],
        "left_out": found.left_out,
        "notes": notes(found),
        "commands": launches(found.asked, winner.design) if winner else {},
    }
