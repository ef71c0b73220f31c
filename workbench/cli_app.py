"""`workbench` alone: serve the app and open it in the browser."""

import argparse
import webbrowser

from workbench.cli_output import say

PORT = 5006


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default {PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    return serve_app(args.port, not args.no_browser)


def serve_app(port: int, browser: bool, page: str = "", runs: tuple[str, ...] = ()) -> int:
    """Serve the app on loopback until interrupted; `runs` are run files to have open in it."""
    from workbench.app import serve

    def ready(address: str) -> None:
        say(f"workbench: {address}{page}  (stop with Ctrl+C)")
        if browser:
            webbrowser.open(f"{address}{page}")

    serve(port, ready, runs=runs)
    return 0
