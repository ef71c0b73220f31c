"""The web app: one server on loopback, a route for each page."""

import socket
from collections.abc import Callable
from typing import Any

import panel as pn

from engine.core.errors import BadInput
from workbench.pages_catalogue import catalogue_page

HOST = "127.0.0.1"


def check_port(port: int) -> None:
    """Raises BadInput where the port cannot be served on."""
    if not 1 <= port <= 65535:
        raise BadInput(f"port {port}: not a port; give one from 1 to 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as fault:
            raise BadInput(
                f"port {port}: {fault.strerror.lower()}; free it or choose another with --port"
            ) from None


def routes() -> dict[str, Callable[[], Any]]:
    """Page function by place."""
    return {"": catalogue_page, "catalogue": catalogue_page}


def serve(port: int, ready: Callable[[str], None], runs: tuple[str, ...] = ()) -> None:
    """Serve the app until interrupted; `ready` is told its address once it answers."""
    check_port(port)
    pn.extension()
    origins = [f"{host}:{port}" for host in (HOST, "localhost")]
    server = pn.serve(
        {name or "/": page for name, page in routes().items()},
        address=HOST,
        port=port,
        websocket_origin=origins,
        show=False,
        start=False,
        title="Parallel Workbench",
    )
    server.io_loop.add_callback(ready, f"http://{HOST}:{port}")
    server.start()
    server.io_loop.start()
