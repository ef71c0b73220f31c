"""`workbench open`: see a saved run in the app."""

import argparse
from urllib.parse import quote

from workbench.cli_app import PORT, serve_app

ABOUT = "open a saved run in the app: scrub, compare, export"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE.run", help="runs saved with --save")
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default {PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    from engine.core.file import load

    for file in args.files:
        load(file)  # a bad file is said before the browser opens
    page = f"/run?file={quote(args.files[0])}"
    return serve_app(args.port, not args.no_browser, page, runs=tuple(args.files))
