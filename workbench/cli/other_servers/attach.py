"""`workbench attach`: another server's metrics and cache, watched in the app or kept in a file."""

import argparse
from urllib.parse import urlencode

from workbench.cli.app import PORT, serve_app
from workbench.cli.output import check_place, follow, print_json, print_table, say

ABOUT = """watch a vLLM or SGLang server by what it publishes

  workbench attach http://127.0.0.1:8000                          its levels and latencies, live
  workbench attach http://127.0.0.1:8000 --cache-events tcp://127.0.0.1:5557    its pages, too
  workbench attach http://127.0.0.1:8000 --seconds 60 --save minute.run         without a browser"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the server, http://host:port")
    parser.add_argument(
        "--cache-events", default="", metavar="ADDRESS",
        help="its publisher of KV cache events, tcp://host:port",
    )  # fmt: skip
    parser.add_argument("--every", default="1", metavar="S", help="seconds between two looks")
    parser.add_argument(
        "--seconds", metavar="S", help="watch so long without a browser, print the figures"
    )
    parser.add_argument("--save", metavar="FILE", help="with --seconds: keep the run (*.run)")
    parser.add_argument("--json", action="store_true", help="with --seconds: print JSON")
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default {PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from engine.core.errors import BadInput
    from workbench.attach.scrape import address
    from workbench.attach.watch import Attached

    told = {"url": args.url, "every": args.every, "cache_events": args.cache_events}
    if args.seconds is not None:
        told["seconds"] = args.seconds
    config = update(Attached(), told)
    address(args.url)  # a bad one is said before the browser opens
    if args.seconds is not None:
        return _without_browser(config, args)
    if args.save or args.json:
        raise BadInput("--save and --json: of a watch that ends; say how long with --seconds")
    page = f"/attach?{urlencode({name: text for name, text in told.items() if text})}"
    return serve_app(args.port, not args.no_browser, page)


def _without_browser(config: object, args: argparse.Namespace) -> int:
    from engine.core.file import save
    from engine.core.run import Run
    from workbench.attach.watch import Attached, watch
    from workbench.summary import rows, summary

    assert isinstance(config, Attached)
    check_place(args.save)
    say(f"watching {args.url} …")
    done = follow(Run.start(watch, config))
    saved = str(save(done.log, args.save)) if args.save else None
    if args.json:
        print_json({"url": args.url, "saved": saved, **summary(done.log)})
    else:
        print_table(("figure", "value"), rows(done.log))
        if saved:
            print(f"\nsaved {saved}; see it with `workbench open {saved}`")
    return 0
