"""`workbench open`: see a saved run, or another tool's trace, in the app."""

import argparse
from pathlib import Path
from urllib.parse import quote

from workbench.cli.app import PORT, serve_app

ABOUT = "open a saved run, or a profiler's trace, in the app: scrub, compare, export"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="runs saved with --save (.run), Chrome traces (.json, .json.gz), "
        "exports of Nsight Systems (.sqlite)",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default {PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    from engine.core.errors import BadInput
    from engine.core.file import load
    from workbench.traces.read import SUFFIXES

    for file in args.files:  # a bad file is said before the browser opens
        if Path(file).is_dir():
            raise BadInput(
                f"{file}: a folder; give a run (.run) or a trace (.json, .json.gz, .sqlite)"
            )
        if not file.lower().endswith(SUFFIXES):
            load(file)
        elif not Path(file).is_file():
            raise BadInput(f"{file}: no such file; give a trace (.json, .json.gz, .sqlite)")
    page = f"/run?file={quote(args.files[0])}"
    return serve_app(args.port, not args.no_browser, page, runs=tuple(args.files))
