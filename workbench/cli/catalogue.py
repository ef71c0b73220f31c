"""`workbench catalogue`: every system, its paper, and whether it is built."""

import argparse

from engine.core.names import counted
from workbench.catalogue import families, search
from workbench.cli.output import print_json, print_table

ABOUT = "list every system, with its paper and whether it is built"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", default="", metavar="WORDS", help="only rows with these words")
    parser.add_argument("--family", default="", choices=families(), help="only this family")
    parser.add_argument("--built", action="store_true", help="only what is built")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    found = search(args.search, args.family, True if args.built else None)
    if args.json:
        print_json([entry.row() for entry in found])
    elif found:
        rows = [(e.slug, e.family, "built" if e.built else "not built yet", e.title) for e in found]
        print_table(("slug", "family", "", "system"), rows)
        print(f"\n{counted(len(found), 'system')}, {sum(e.built for e in found)} built")
    else:
        print("nothing in the catalogue has these words")
    return 0
