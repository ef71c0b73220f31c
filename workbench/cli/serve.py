"""`workbench serve`: an OpenAI-compatible endpoint on the engine, with its live view beside it."""

import argparse
import os
from functools import partial
from pathlib import Path

from workbench.cli.app import TOKEN, serve_app, until_stopped
from workbench.cli.output import say

ABOUT = """serve a model to OpenAI-compatible clients

  workbench serve --model stdlib-5m --port 8000

On loopback anyone on this machine may ask. Beyond it (--host) a token is required, taken from
the environment variable WORKBENCH_TOKEN. With --watch the app's live page shows the requests."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default="stdlib-5m", metavar="NAME", help="a shipped model or a folder"
    )
    parser.add_argument("--name", default="", help="what clients call it (default: its own name)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME:PORT",
        help="a further Host header that clients may send",
    )  # fmt: skip
    parser.add_argument(
        "--grace", type=float, default=10.0, metavar="SECONDS",
        help="that open answers have to finish once it is told to stop (default 10)",
    )  # fmt: skip
    parser.add_argument(
        "--keys", default="", metavar="FILE",
        help="clients' API keys, NAME KEY a line; each client has its own prefix cache",
    )  # fmt: skip
    parser.add_argument(
        "--queue", type=int, default=1024, metavar="N",
        help="requests open at once; more get 429 with Retry-After (default 1024)",
    )  # fmt: skip
    parser.add_argument(
        "--queue-seconds", type=float, default=0.0, metavar="SECONDS",
        help="in which a request must begin, or gets 429 (default 0: however long)",
    )  # fmt: skip
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument(
        "--watch", action="store_true", help="serve the app's live page on the same port"
    )
    parser.add_argument("--no-browser", action="store_true", help="with --watch: open no browser")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from engine.core.errors import BadInput
    from engine.inference.config import InferenceConfig
    from workbench.api.access import LOOPBACK, access, read_keys
    from workbench.api.server import check_port, serve_api
    from workbench.cli.run import changes
    from workbench.live.live import LiveEngine

    keys = read_keys(Path(args.keys)) if args.keys else ()
    names = tuple(args.allow_host)
    rules = access(args.host, args.port, os.environ.get(TOKEN, ""), names, keys)
    if args.queue < 1 or not 0 <= args.queue_seconds < float("inf"):
        raise BadInput("--queue: at least 1, and --queue-seconds at least 0")
    check_port(args.port, args.host)
    if args.watch and args.host not in LOOPBACK:
        raise BadInput("--watch: only on loopback; leave out --host")
    config = update(InferenceConfig(), {"model": args.model, **changes(args.set)})
    limits = {"queue": args.queue, "patience": args.queue_seconds}
    live = LiveEngine(config, args.name, **limits).start()
    try:
        live.wait()
        if args.watch:
            return serve_app(args.port, not args.no_browser, live=live, rules=rules)
        address = f"http://{args.host}:{args.port}/v1"
        with until_stopped():
            ready = partial(say, _ready(address, live.name))
            serve_api(live, rules, args.host, args.port, ready, args.grace)
    finally:
        live.close()
    return 0


def _ready(address: str, name: str) -> str:
    return f"workbench: {name} at {address}  (stop with Ctrl+C)"
