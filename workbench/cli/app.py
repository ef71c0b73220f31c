"""`workbench` alone: serve the app and open it in the browser."""

import argparse
import gc
import os
import secrets
import signal
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from workbench.cli.output import say
from workbench.interrupts import taken

PORT = 5006
HOST = "127.0.0.1"
TOKEN = "WORKBENCH_TOKEN"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default {PORT})")
    parser.add_argument(
        "--host", default=HOST, help="address to listen on; beyond this machine a token is asked"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME:PORT",
        help="a further Host header that browsers may send",
    )  # fmt: skip
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--model", default="stdlib-5m", metavar="NAME", help="the live page's model (or its folder)"
    )


def run(args: argparse.Namespace) -> int:
    allowed = tuple(args.allow_host)
    rules = app_rules(args.host, args.port, os.environ.get(TOKEN, ""), allowed)
    show = not args.no_browser
    return serve_app(args.port, show, model=args.model, host=args.host, rules=rules)


def app_rules(host: str, port: int, token: str = "", allowed: tuple[str, ...] = ()) -> Any:
    """Who may enter the app: beyond this machine only who bears a token, a fresh one if none is.

    Raises BadInput for a token too short.
    """
    from workbench.api.access import LOOPBACK, access, host_header
    from workbench.api.server import names_of

    if host not in LOOPBACK:
        token = token or secrets.token_urlsafe(24)
    names = tuple(host_header(name, port) for name in names_of(host))
    return access(host, port, token, (*names, *allowed))


def serve_app(port: int, browser: bool, page: str = "", **options: Any) -> int:
    """Serve the app on loopback until interrupted; `options` are `workbench.pages.app.serve`'s."""
    from workbench.api.server import check_port

    check_port(port, options.get("host", HOST))  # before the second that importing the app takes
    with no_collection():
        from workbench.pages.app import serve

    rules = options.setdefault("rules", app_rules(HOST, port, os.environ.get(TOKEN, "")))

    def ready(address: str) -> None:
        place = f"{address}{page}{_token(page, rules.token)}"
        say(f"workbench: {place}  (stop with Ctrl+C)")
        if browser:
            webbrowser.open(place)

    with until_stopped():
        serve(port, ready, **options)
    return 0


def _token(page: str, token: str) -> str:
    """What to add to a page's address so that a browser may enter."""
    if not token:
        return ""
    return f"{'&' if '?' in page else '/?' if not page else '?'}{urlencode({'token': token})}"


@contextmanager
def no_collection() -> Iterator[None]:
    """What is made meanwhile stays, such as half a million objects of imported modules: nobody
    looks for garbage among them, a fifth of what starting takes. Later, too, each look would hold
    Python's lock, and all whom a server answers, for a tenth of a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def until_stopped() -> Iterator[None]:
    """Ctrl-C, or a polite kill, is how a server is stopped: it ends what is inside, no fault."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        taken()
    finally:
        signal.signal(signal.SIGTERM, before)
