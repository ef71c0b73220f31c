"""`workbench` alone: serve the app and open it in the browser."""

import argparse
import signal
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
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

    with until_stopped():
        serve(port, ready, **options)
    return 0


@contextmanager
def until_stopped() -> Iterator[None]:
    """Ctrl-C, or a polite kill, is how a server is stopped: it ends what is inside, no fault."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
