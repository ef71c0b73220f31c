"""`workbench trace`: a run file as a Chrome trace, which Perfetto opens, and the other way."""

import argparse
from pathlib import Path

from engine.core.errors import BadInput

ABOUT = "write a run as a Chrome trace (for Perfetto), or a Chrome trace as a run"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a run (.run), or a profiler's trace (.json, .json.gz)"
    )
    parser.add_argument("-o", "--out", metavar="OUT", help="where to (default: beside it)")


def run(args: argparse.Namespace) -> int:
    from engine.core.chrome.write import save_chrome_trace
    from engine.core.file import load, save
    from workbench.trace_in import SUFFIXES, log_of

    path = Path(args.file)
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
