"""The app as a child of a Jupyter server (`python -m workbench.jupyter.app_child`).

In: one line of JSON on standard input with secret, prefix and root. Out: one line with the port.
It ends when the input closes. A request without the secret is refused before any route sees it.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tornado.web import RequestHandler

from workbench.jupyter.reached import only_for
from workbench.live.live import LiveEngine
from workbench.pages.app import live_config, make_server
from workbench.pages.shelf.shelf import Shelf

MODEL = "stdlib-5m"


class RunsHeld(RequestHandler):
    """The runs on the shelf and those that pages show now, newest first."""

    def initialize(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def get(self) -> None:
        self.finish({"runs": self.shelf.listing()})


def served(secret: str, prefix: str, root: Path) -> tuple[Any, LiveEngine]:
    """The app's server on a free port, not started, and its live engine, which waits too."""
    live, shelf = LiveEngine(live_config(MODEL), at_once=True), Shelf(root)
    held = [("/runs.json", RunsHeld, {"shelf": shelf})]
    server = make_server(0, live, shelf, prefix=prefix, extra_patterns=held)
    only_for(server._tornado, secret)
    return server, live


def main() -> None:
    given = json.loads(sys.stdin.buffer.readline())
    # Ctrl-C in the Jupyter server's terminal asks there first; the input's end is what ends us.
    signal.signal(signal.SIGINT, lambda *_: None)
    server, live = served(given["secret"], given["prefix"], Path(given["root"]))
    sys.stdout.write(json.dumps({"port": server.port}) + "\n")
    sys.stdout.flush()
    os.dup2(2, 1)  # what libraries say goes to the Jupyter server's log

    def until_closed() -> None:
        sys.stdin.buffer.read()
        server.io_loop.add_callback(server.io_loop.stop)

    threading.Thread(target=until_closed, daemon=True).start()
    try:
        server.start()
        server.io_loop.start()
    finally:
        live.close()
        server.stop()


if __name__ == "__main__":
    main()
