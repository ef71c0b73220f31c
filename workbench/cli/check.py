"""`workbench check`: do the claims of studies hold here?"""

import argparse

from engine.core.errors import BadInput
from workbench.catalogue import catalogue, study
from workbench.cli import cost as cli_cost
from workbench.cli.output import print_json, say, seed
from workbench.cli.run import changes
from workbench.study import Verdict, check

ABOUT = """judge the claims of studies on this machine, or the cost model by measured tables

`workbench check cost-model TABLE.csv …` prints the cost model's error by operator and device.
Exit code 0: all hold; 1: one does not; 2: bad input."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="studies (default: all built)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", action="store_true", help="small settings (default)")
    size.add_argument("--full", action="store_true", help="the settings the claims are stated for")
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument("--seed", type=seed, default=0, help="the runs' seed (default 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--fit", metavar="FILE", help="cost-model: fit its constants on the tables and write them"
    )


def run(args: argparse.Namespace) -> int:
    if args.slugs[:1] == [cli_cost.NAME]:
        return cli_cost.run(args.slugs[1:], args.fit, args.json)
    if args.fit:
        raise BadInput("--fit: only the cost model is fitted: workbench check cost-model TABLE …")
    slugs = args.slugs or [entry.slug for entry in catalogue() if entry.built]
    studies = [study(slug) for slug in slugs]
    verdicts: list[Verdict] = []
    for each in studies:
        turned = changes(args.set)
        for verdict in check(each, turned, fast=not args.full, seed=args.seed):
            verdicts.append(verdict)
            if not args.json:
                _print(verdict)
    if args.json:
        print_json([verdict.row() for verdict in verdicts])
    elif not verdicts:
        say("workbench: nothing to check")
    return 0 if all(verdict.outcome.holds for verdict in verdicts) else 1


def _print(verdict: Verdict) -> None:
    claim, outcome = verdict.claim, verdict.outcome
    print(f"{'holds' if outcome.holds else 'NO':5}  {verdict.slug} / {claim.id}  [{claim.grade}]")
    print(f"       {claim.sentence}")
    print(f"       expected {outcome.expected}; found {outcome.measured}")
    if outcome.caution:
        print(f"       {outcome.caution}")
    print(f"       the paper: {claim.paper}\n", flush=True)
