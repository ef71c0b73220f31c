"""`workbench trace`: a run file as a Chrome trace, which Perfetto opens."""

import argparse
from pathlib import Path

from engine.core.errors import BadInput

ABOUT = "write a run as a Chrome trace (open it in Perfetto or chrome://tracing)"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.run", help="a run saved with --save")
    parser.add_argument("-o", "--out", metavar="OUT.json", help="where to (default: beside it)")


def run(args: argparse.Namespace) -> int:
    from engine.core.file import load
    from engine.core.trace import save_chrome_trace

    log = load(args.file)
    out = Path(args.out) if args.out else Path(args.file).with_suffix(".json")
    try:
        print(save_chrome_trace(log, out))
    except OSError as fault:
        raise BadInput(f"{out}: cannot write the trace ({fault.strerror})") from None
    return 0
