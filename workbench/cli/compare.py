"""`workbench compare`: real runs and their modelled twins on this machine, side by side."""

import argparse
import sys
from typing import Any

from workbench.cli.output import print_json, print_table, say
from workbench.cli.run import changes

ABOUT = """lay a real run and its modelled twin side by side and print the model's error

  workbench compare --set workload.count=32 --set pages=128
  workbench compare --loads --replicas 2     latencies at three loads, engines behind a router
  workbench compare --training               a step of training on two ranks
  workbench compare --all --full             all three in turn, on a machine left alone"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument("--loads", action="store_true", help="latencies at three loads instead")
    parser.add_argument(
        "--replicas", type=int, default=1, help="engines behind a router, with --loads (default 1)"
    )
    parser.add_argument("--training", action="store_true", help="a step of training instead")
    parser.add_argument("--all", action="store_true", help="serving, loads and training in turn")
    parser.add_argument("--full", action="store_true", help="more requests, longer outputs")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from workbench.real_and_modelled.compare import compare, table, usual

    if args.all:
        return _all(args)
    if args.training:
        return _training(args)
    if args.loads:
        return _loads(args)
    result = compare(update(usual(args.full), changes(args.set)), say=say)
    if args.json:
        print_json(result)
    else:
        head, *rows = table(result)
        print_table(head, rows)
    return 0


def _loads(args: argparse.Namespace) -> int:
    """Real and modelled latencies at three loads, behind the fleet's router."""
    from engine.core.config import update
    from workbench.real_and_modelled.loads import CutShort, compare, table_of, usual

    def told(rows: list[dict[str, Any]]) -> None:
        if args.json:
            print_json(rows)
            return
        head, *lines = table_of(rows)
        print_table(head, lines)

    own = {"replicas": args.replicas, **changes(args.set)}
    try:
        told(compare(update(usual(200 if args.full else 40), own), say))
    except CutShort as cut:
        told(cut.rows)
        sys.stdout.flush()
        raise
    return 0


def _training(args: argparse.Namespace) -> int:
    """A real and a modelled training step on ranks of this machine."""
    from engine.core.config import update
    from workbench.real_and_modelled.rows import table
    from workbench.real_and_modelled.training import compare, usual

    rows = compare(update(usual(args.full), changes(args.set)), say)
    if args.json:
        print_json(rows)
        return 0
    head, *lines = table(rows)
    print_table(head, lines)
    return 0


def _all(args: argparse.Namespace) -> int:
    """Each of the three by itself; raises BadInput for knobs, which differ between them."""
    from engine.core.errors import BadInput

    if args.set or args.json:
        raise BadInput("--all: takes neither --set nor --json; ask for one of the three with them")
    for kind in ("serving", "loads", "training"):
        say(f"== {kind}")
        one = {"all": False, "loads": kind == "loads", "training": kind == "training"}
        run(argparse.Namespace(**{**vars(args), **one}))
        print(flush=True)
    return 0
