"""`workbench train`: reproduce a shipped model from its recipe."""

import argparse
from pathlib import Path

from engine.core.errors import BadInput
from workbench.cli_output import print_json, say

ABOUT = "train a shipped model again from its recipe"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model, such as stdlib-5m")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the model goes")
    parser.add_argument("--fast", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.training.recipes import reproduce

    try:
        result = reproduce(args.name, Path(args.out), say, args.fast)
    except OSError as fault:
        raise BadInput(f"{args.out}: cannot train into it ({fault}); choose another") from None
    if args.json:
        print_json(result)
    else:
        print(f"trained {args.name} into {args.out}")
    return 0
