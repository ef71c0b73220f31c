"""`workbench trace`: a run file as a Chrome trace, which Perfetto opens, and the other way."""

import argparse
import math
from pathlib import Path

from engine.core.errors import BadInput

ABOUT = """write a run as a Chrome trace (for Perfetto), or a Chrome trace as a run

  workbench trace profile.json.gz --breakdown   what its accelerators did with their time"""
KERNELS = 15  # told of a trace


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a run (.run), or a profiler's trace (.json, .json.gz)"
    )
    parser.add_argument(
        "--breakdown", action="store_true",
        help="print each device's compute, communication, copies, idle time and its kernels",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="with --breakdown: print JSON")
    parser.add_argument("-o", "--out", metavar="OUT", help="where to (default: beside it)")


def run(args: argparse.Namespace) -> int:
    from engine.core.chrome.write import save_chrome_trace
    from engine.core.file import load, save
    from workbench.trace_in import SUFFIXES, log_of

    path = Path(args.file)
    if args.breakdown:
        return _breakdown(path, args.json)
    kind = next((s for s in SUFFIXES if path.name.lower().endswith(s)), "")
    stem = path.name[: len(path.name) - len(kind)] if kind else path.stem
    out = Path(args.out) if args.out else path.parent / (stem + (".run" if kind else ".json"))
    if out.resolve() == path.resolve():
        raise BadInput(f"{out}: would overwrite what is read; give another place with -o")
    if kind:
        print(save(log_of(path), out))
        return 0
    log = load(path)
    try:
        print(save_chrome_trace(log, out))
    except OSError as fault:
        raise BadInput(f"{out}: cannot write the trace ({fault.strerror})") from None
    return 0


def _breakdown(path: Path, as_json: bool) -> int:
    from dataclasses import asdict

    from engine.core.chrome.breakdown import breakdowns, kernels
    from engine.core.chrome.read import read_chrome
    from widgets.theme import figure
    from workbench.cli.output import print_json, print_table

    trace = read_chrome(path)
    found = breakdowns(trace.spans, trace.categories, trace.device_of)
    if not found:
        raise BadInput(f"{path}: no kernels of an accelerator in it; nothing to break down")
    ran = kernels(trace.spans, trace.categories, trace.device_of)
    if as_json:
        devices = [{**asdict(b), "idle": b.idle, "exposed": b.exposed} for b in found]
        print_json({"devices": devices, "kernels": [asdict(kernel) for kernel in ran]})
        return 0
    heads = ("device", "time", "computing", "communicating", "of it hidden", "copying", "idle")
    print_table(heads, [
        (b.device, figure(b.window, "s"), figure(b.share(b.compute), "%"),
         figure(b.share(b.communication), "%"),
         figure(b.overlapped / b.communication, "%") if b.communication else "–",
         figure(b.share(b.memory), "%"), figure(b.share(b.idle), "%"))
        for b in found
    ])  # fmt: skip
    print()
    whole = sum(kernel.seconds for kernel in ran)
    heads = ("kernel", "category", "count", "time", "share", "mean", "longest")
    print_table(heads, [
        (k.name[:60], k.category, str(k.count), figure(k.seconds, "s"),
         figure(k.seconds / whole if whole else math.nan, "%"),
         figure(k.seconds / k.count, "s"), figure(k.longest, "s"))
        for k in ran[:KERNELS]
    ])  # fmt: skip
    if len(ran) > KERNELS:
        print(f"and {len(ran) - KERNELS} more; --json lists them all")
    return 0
