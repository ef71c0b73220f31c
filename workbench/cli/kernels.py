"""`workbench kernels`: the operators, their variants, whether they are right and how fast."""

import argparse
from typing import Any

from engine.core.errors import BadInput
from workbench.cli.output import print_json, print_table, say

ABOUT = """list the operators and their variants, their parity and speed

Exit code 0: all well; 1: with --check, a variant is further from the truth than allowed; 2: bad
input, such as a variant that cannot run here."""

REPEATS = 5  # of each roof's measurement


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operator", nargs="?", metavar="OPERATOR", help="only this one")
    parser.add_argument("--variant", default="", metavar="NAME", help="only this one of OPERATOR")
    parser.add_argument(
        "--check", action="store_true", help="largest error over its cases against float64"
    )
    parser.add_argument(
        "--time", action="store_true", help="time at its sizes against this machine's roofs"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.variant and not args.operator:
        raise BadInput("--variant needs the operator it belongs to: workbench kernels OPERATOR")
    chosen = _chosen(args.operator, args.variant)
    found = [_facts(op, variant, forced=bool(args.variant)) for op, variant in chosen]
    wrong = 0
    if args.check:
        for row, (op, variant) in zip(found, chosen, strict=True):
            row["parity"] = _parity(op, variant)
            wrong += sum(not p["holds"] for p in row["parity"] if p["cases"])
    if args.time:
        _add_times(found, chosen)
    if args.json:
        print_json(found)
    else:
        _print(found, args)
    return 1 if wrong else 0


def _chosen(name: str | None, variant: str) -> list[tuple[Any, Any]]:
    """Operators with variants; a forced variant is picked as a caller would pick it."""
    import torch

    from engine.kernels.operator import operator, operators

    if not name:
        return [(op, v) for op in operators().values() for v in op.variants().values()]
    op = operator(name)
    if not variant:
        return [(op, v) for v in op.variants().values()]
    dtype = next((v.dtypes[0] for v in op.variants().values() if v.name == variant), "float32")
    return [(op, op.pick(op.cases[0].make(0, getattr(torch, dtype)), variant))]


def _facts(op: Any, variant: Any, forced: bool) -> dict[str, Any]:
    import torch

    given = op.cases[0].make(0, getattr(torch, variant.dtypes[0]))
    obstacle = variant.obstacle(given, forced)
    if obstacle.startswith("runs on cuda") and not torch.cuda.is_available():
        obstacle = "no GPU"
    if variant.device == "cuda" and torch.cuda.is_available():
        obstacle = ""
    elif variant.interpreted and obstacle == "no GPU":
        obstacle = "interpreted"
    interpreted = not obstacle and variant.device == "cuda" and not torch.cuda.is_available()
    picked = not obstacle and op.pick(given) is variant
    return {
        "operator": op.name,
        "variant": variant.name,
        "device": variant.device,
        "dtypes": list(variant.dtypes),
        "gradients": variant.gradients,
        "runs_here": not obstacle,
        "obstacle": obstacle,
        "interpreted": interpreted,
        "picked": picked,
        "about": variant.about,
    }


def _parity(op: Any, variant: Any) -> list[dict[str, Any]]:
    from engine.kernels.parity import parity

    kept = []
    for dtype in variant.dtypes:
        if dtype in op.tolerances:
            say(f"checking {op.name} {variant.name} in {dtype}")
            found = parity(op, variant, dtype)
            row = {"dtype": dtype, "error": found.error, "tolerance": found.tolerance}
            row |= {"cases": found.cases, "worst": found.worst, "holds": found.holds}
            kept.append(row | {"refused": list(found.refused)})
    return kept


def _add_times(found: list[dict[str, Any]], chosen: list[tuple[Any, Any]]) -> None:
    from engine.hardware.measure import probe
    from workbench.kernel_times import times

    machine = probe(say, REPEATS)  # now: what was kept may be of a busier hour
    if machine.caution:
        say(f"limits {machine.caution}: what is reached of them is no use until it is quiet")
    for row, (op, variant) in zip(found, chosen, strict=True):
        row["times"] = []
        if row["runs_here"]:
            say(f"timing {op.name} {variant.name}")
            row["times"] = list(times(op, variant, machine))


def _print(found: list[dict[str, Any]], args: argparse.Namespace) -> None:
    if args.check:
        _print_parity(found)
    if args.check and args.time:
        print()
    if args.time:
        _print_times(found)
    if args.check or args.time:
        return
    head = ("operator", "variant", "device", "dtypes", "gradients", "here", "about")
    print_table(head, [_line(row) for row in found])
    print("\n* picked here; interpreted: no GPU, runs if asked for by name. See --check, --time.")


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    told = "interpreted" if row["interpreted"] else row["obstacle"]
    here = told or ("yes *" if row["picked"] else "yes")
    grad = "yes" if row["gradients"] else ""
    dtypes = " ".join(row["dtypes"])
    return row["operator"], row["variant"], row["device"], dtypes, grad, here, row["about"]


def _print_parity(found: list[dict[str, Any]]) -> None:
    rows = []
    for row in found:
        for p in row["parity"]:
            if not p["cases"]:
                verdict, error = "not run: " + "; ".join(p["refused"][:1]), ""
            else:
                verdict, error = "yes" if p["holds"] else "NO", f"{p['error']:.2e}"
                verdict += f" ({p['cases']} shapes, worst {p['worst'] or 'none'})"
            cells = (row["operator"], row["variant"], p["dtype"], error, f"{p['tolerance']:.0e}")
            rows.append((*cells, verdict))
    print_table(("operator", "variant", "dtype", "error", "allowed", "holds"), rows)


def _print_times(found: list[dict[str, Any]]) -> None:
    from workbench.benches.kernels import duration

    rows = []
    for row in found:
        for t in row["times"]:
            of = t["fraction_of_limit"]
            rates = (
                f"{t['flops'] / t['seconds'] / 1e9:.3g}",
                f"{t['bytes'] / t['seconds'] / 1e9:.3g}",
            )
            limit = "" if of is None else f"{of:.0%} of {t['roof']}"
            cells = (row["operator"], row["variant"], t["size"], duration(t["seconds"]), *rates)
            rows.append((*cells, limit))
    head = ("operator", "variant", "size", "time", "GFLOP/s", "GB/s", "reached of the limit")
    print_table(head, rows)
    print("\nlimits: measured main memory and arithmetic; what fits a cache can pass the first.")
