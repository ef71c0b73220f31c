"""`workbench` alone: serve the app and open it in the browser."""

import argparse
import webbrowser
from typing import Any

from workbench.cli_output import say

PORT = 5006


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default {PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--model", default="stdlib-5m", metavar="NAME", help="the live page's model (or its folder)"
    )


def run(args: argparse.Namespace) -> int:
    return serve_app(args.port, not args.no_browser, model=args.model)


def serve_app(port: int, browser: bool, page: str = "", **options: Any) -> int:
    """Serve the app on loopback until interrupted; `options` are those of `workbench.app.serve`."""
    from workbench.server import check_port

    check_port(port)  # before the second that importing the app takes
    from workbench.app import serve

    def ready(address: str) -> None:
        say(f"workbench: {address}{page}  (stop with Ctrl+C)")
        if browser:
            webbrowser.open(f"{address}{page}")

    serve(port, ready, **options)
    return 0
