"""`workbench compare`: a real run and its modelled twin on this machine, side by side."""

import argparse

from workbench.cli.output import print_json, print_table, say
from workbench.cli.run import changes

ABOUT = """lay a real run and its modelled twin side by side and print the model's error

  workbench compare --set workload.count=32 --set pages=128
  workbench compare --loads --replicas 2     latencies at three loads, engines behind a router"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument("--loads", action="store_true", help="latencies at three loads instead")
    parser.add_argument(
        "--replicas", type=int, default=1, help="engines behind a router, with --loads (default 1)"
    )
    parser.add_argument("--full", action="store_true", help="more requests, longer outputs")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from workbench.real_and_modelled.compare import compare, table, usual

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
    from workbench.real_and_modelled.loads import compare, table_of, usual

    own = {"replicas": args.replicas, **changes(args.set)}
    rows = compare(update(usual(200 if args.full else 40), own), say)
    if args.json:
        print_json(rows)
        return 0
    head, *lines = table_of(rows)
    print_table(head, lines)
    return 0
