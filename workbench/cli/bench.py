"""`workbench bench`: measure this machine's engine, with the limits beside each figure."""

import argparse
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

from engine.core.errors import BadInput
from engine.core.names import suggest
from workbench.cli.output import check_place, print_json, print_table, say

ABOUT = "measure: run one of the benchmarks and print its table"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="the benchmark (default, and list: list them)"
    )
    parser.add_argument("--full", action="store_true", help="the sizes that claims are stated for")
    parser.add_argument("--save", metavar="FILE", help="keep the run that was measured (gpu)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def names() -> list[str]:
    """Every benchmark there is, by file name."""
    here = [str(Path(__file__).parent.parent / "benches")]
    return sorted(m.name for m in pkgutil.iter_modules(here) if not m.name.startswith("_"))


def bench(name: str) -> ModuleType:
    """The module of that benchmark. Raises BadInput listing those there are."""
    if name.replace("-", "_") not in names():
        raise BadInput(f"bench {name!r}: no such benchmark; {suggest(name, names())}")
    return importlib.import_module(f"workbench.benches.{name.replace('-', '_')}")


def _about(name: str) -> str:
    try:
        return str(bench(name).ABOUT)
    except ModuleNotFoundError as fault:
        return f"needs the package {fault.name!r}, not installed here (pip install {fault.name})"


def run(args: argparse.Namespace) -> int:
    if args.name in (None, "list"):
        found = [(name.replace("_", "-"), _about(name)) for name in names()]
        if args.json:
            print_json([{"name": name, "about": about} for name, about in found])
        else:
            print_table(("bench", "measures"), found)
        return 0
    module = bench(args.name)
    if args.save and not getattr(module, "SAVES", False):
        raise BadInput(f"bench {args.name!r}: keeps no run, so --save has nothing to save")
    check_place(args.save)
    more = {"kept": args.save} if args.save else {}
    result = module.run(full=args.full, say=say, **more)
    if args.json:
        print_json(result)
    else:
        head, *rows = module.table(result)
        print_table(head, rows)
    return 0
