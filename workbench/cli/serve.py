"""`workbench serve`: an OpenAI-compatible endpoint on the engine, with its live view beside it."""

import argparse
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from workbench.cli.app import TOKEN, no_collection, serve_app, until_stopped
from workbench.cli.output import say

ABOUT = """serve a model to OpenAI-compatible clients

  workbench serve --model stdlib-5m --port 8000

On loopback anyone on this machine may ask. Beyond it (--host) a token is required, taken from
the environment variable WORKBENCH_TOKEN. The engine runs in a process of its own: where it ends,
open answers end with an error and another is started. With --watch the app's live page shows the
requests, all in one process."""


# Who asks much in one call shares with whoever asks little, who waits for short steps. Under single
# requests without end a call of many has one row, and `patience` steps later a second: 64 prompts,
# the most there are in one, of 512 tokens an answer then end within 32 x (512 + 100) steps, which
# is eight of the ten minutes that clients wait where a step takes 25 ms. Each call costs a row.
SHARED = {"ordering": "by_turns", "batching.chunk": 256, "patience": 100}


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
    parser.add_argument(
        "--otlp", default="", metavar="URL",
        help="send a span for each answer to this OpenTelemetry collector, http://host:4318",
    )  # fmt: skip
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument(
        "--watch", action="store_true", help="serve the app's live page on the same port"
    )
    parser.add_argument("--no-browser", action="store_true", help="with --watch: open no browser")
    parser.add_argument(
        "--one-process", action="store_true", help="the engine and its API in this process"
    )


def run(args: argparse.Namespace) -> int:
    from workbench.api.server import check_port

    rules = _checked(args)
    check_port(args.port, args.host)
    if args.watch or args.one_process or not hasattr(socket, "AF_UNIX"):
        return _served_here(args, rules)
    import asyncio

    with tempfile.TemporaryDirectory(prefix="workbench-") as folder, until_stopped():
        asyncio.run(_served_behind(args, folder))
    return 0


def _checked(args: argparse.Namespace) -> Any:
    """Who may ask. Raises BadInput for options that do not go together."""
    from engine.core.errors import BadInput
    from workbench.api.access import LOOPBACK, access, read_keys

    keys = read_keys(Path(args.keys)) if args.keys else ()
    names = tuple(args.allow_host)
    rules = access(args.host, args.port, os.environ.get(TOKEN, ""), names, keys)
    if args.queue < 1 or not 0 <= args.queue_seconds < float("inf"):
        raise BadInput("--queue: at least 1, and --queue-seconds at least 0")
    if args.watch and args.host not in LOOPBACK:
        raise BadInput("--watch: only on loopback; leave out --host")
    return rules


def _live(args: argparse.Namespace) -> Any:
    from engine.core.config import update
    from engine.inference.config import InferenceConfig
    from workbench.cli.run import changes
    from workbench.live.live import LiveEngine
    from workbench.live.spans import spans_to

    config = update(InferenceConfig(), {"model": args.model, **SHARED})
    config = update(config, changes(args.set))
    spans = spans_to(args.otlp, args.name or config.model) if args.otlp else None
    limits = {"queue": args.queue, "patience": args.queue_seconds}
    return LiveEngine(config, args.name, spans=spans, **limits).start()


def _served_here(args: argparse.Namespace, rules: Any) -> int:
    from workbench.api.server import serve_api

    with ExitStack() as at_the_end:
        with loading_said(), no_collection():
            live = _live(args)
            at_the_end.callback(live.close)
            live.wait()
        if args.watch:
            return serve_app(args.port, not args.no_browser, live=live, rules=rules)
        with until_stopped():
            ready = partial(say, _ready(args, live.name))
            listen = partial(_listen, args.host, args.port)
            serve_api(live, rules, listen, ready, args.grace)
    return 0


@contextmanager
def loading_said() -> Iterator[None]:
    """Say which model is loaded, of how many GB, and how far it is."""
    from engine.models.tensors.reading import LOG

    told, level = logging.StreamHandler(sys.stderr), LOG.level
    told.setFormatter(logging.Formatter("%(message)s"))
    LOG.addHandler(told)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.removeHandler(told)
        LOG.setLevel(level)


def _listen(host: str, port: int, server: Any) -> None:
    server.listen(port, host)


async def _served_behind(args: argparse.Namespace, folder: str) -> None:
    with no_collection():
        from workbench.api.engine_process import EngineProcess
        from workbench.api.front import serve_before

    told = {name: value for name, value in vars(args).items() if name != "run"}
    process = EngineProcess("workbench.cli.serve:engine", told, folder)
    try:
        await process.start()
        ready = partial(say, _ready(args, process.ready["name"]))
        await serve_before(process, args.host, args.port, ready, say)
    finally:
        await process.close()


def engine() -> None:
    """The main function of the engine's process: what `_served_behind` is before."""
    from tornado.netutil import bind_unix_socket

    from engine.core.errors import BadInput
    from engine.core.limits import VARIABLE, change_as_told
    from engine.core.memory import out_of_memory
    from workbench.api import engine_process
    from workbench.api.server import serve_api

    told = engine_process.asked()
    args = argparse.Namespace(**told)
    try:
        change_as_told(os.environ.get(VARIABLE, ""))
        rules = _checked(args)
        with loading_said(), no_collection():
            live = _live(args)
            live.wait()
    except (BadInput, MemoryError) as fault:
        known = fault if isinstance(fault, BadInput) else out_of_memory(fault)
        return engine_process.answer(fault=str(known))
    try:
        serve_api(
            live, rules,
            lambda server: server.add_socket(bind_unix_socket(args.socket)),
            partial(engine_process.answer, name=live.name),
            args.grace,
            engine_process.until_left,
        )  # fmt: skip
    finally:
        live.close()


def _ready(args: argparse.Namespace, name: str) -> str:
    return f"workbench: {name} at http://{args.host}:{args.port}/v1  (stop with Ctrl+C)"
