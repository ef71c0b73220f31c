"""`workbench run`: one run of a study, its figures, and the run as a file."""

import argparse
from collections.abc import Sequence
from typing import Any

from engine.core.errors import BadInput
from engine.core.run import Run
from workbench.catalogue import study
from workbench.cli.output import check_place, print_json, print_table, say, seed
from workbench.cli.progress import follow

ABOUT = """run a study once and print its figures

  workbench run flover --set batching=static_batch --save static.run"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the study")
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument("--preset", default="", help="start from one of the study's presets")
    parser.add_argument("--seed", type=seed, default=0, help="the run's seed (default 0)")
    parser.add_argument("--save", metavar="FILE", help="keep the run in this file (*.run)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--knobs", action="store_true", help="list the knobs and stop")


def changes(pairs: Sequence[str]) -> dict[str, Any]:
    """`KNOB=VALUE` texts as knob changes, `none` for no value. Raises BadInput without a `=`."""
    found = {}
    for pair in pairs:
        path, sign, value = pair.partition("=")
        if not sign or not path:
            raise BadInput(f"--set {pair!r}: not a knob and a value; write --set KNOB=VALUE")
        found[path.strip()] = None if value == "none" else value
    return found


def run(args: argparse.Namespace) -> int:
    from engine.core.config import to_dict
    from engine.core.file import save
    from workbench.summary import rows, summary

    chosen = study(args.slug)
    config = chosen.configured(changes(args.set), args.preset)
    if args.knobs:
        return list_knobs(config, args.json)
    check_place(args.save)
    say(f"running {args.slug} …")
    done = follow(Run.start(chosen.driver, config, seed=args.seed, study=args.slug))
    saved = str(save(done.log, args.save)) if args.save else None
    if args.json:
        facts = {"slug": args.slug, "seed": args.seed, "config": to_dict(config), "saved": saved}
        print_json({**facts, **summary(done.log)})
    else:
        print_table(("figure", "value"), rows(done.log))
        say(f"\nwhether its paper's claims hold here: `workbench check {args.slug}`")
        if saved:
            print(f"\nsaved {saved}; see it with `workbench open {saved}`")
    return 0


def list_knobs(config: Any, as_json: bool) -> int:
    """Print every knob of `config`; exit code 0."""
    from dataclasses import asdict

    from engine.core.config import knobs

    found = knobs(config)
    if as_json:
        print_json([asdict(knob) for knob in found])
    else:
        print_table(
            ("knob", "value", "range", "what it is"),
            [
                (k.path, k.value, _range(k), f"{k.doc} {f'({k.unit})' if k.unit else ''}")
                for k in found
            ],
        )
    return 0


def _range(knob: Any) -> str:
    if knob.choices:
        return " | ".join(knob.choices)
    if knob.low is None and knob.high is None:
        return ""
    ends = ("" if end is None else f"{end:g}" for end in (knob.low, knob.high))
    return " … ".join(ends)
