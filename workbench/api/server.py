"""Ports and the API's own server; the app's pages have theirs in `workbench.pages.app`."""

import asyncio
import os
import socket
from collections.abc import Callable

from tornado.httpserver import HTTPServer

from engine.core.errors import BadInput
from workbench.api.access import EVERYWHERE, LOOPBACK, Access, host_header
from workbench.api.connections import Server
from workbench.api.drain import GRACE, Stopping, Watch, on_signals
from workbench.api.handlers import BODY, application
from workbench.live.live import LiveEngine

HOST = "127.0.0.1"


def check_port(port: int, host: str = HOST) -> None:
    """Raises BadInput where nothing can be served there."""
    if not 1 <= port <= 65535:
        raise BadInput(f"port {port}: not a port; give one from 1 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        if os.name == "posix":  # elsewhere the option would let two servers share a port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as fault:
            why = (fault.strerror or str(fault)).lower()
            raise BadInput(
                f"port {port} on {host}: {why}; free it or choose another with --port"
            ) from None


def names_of(host: str) -> tuple[str, ...]:
    """What this machine is called by those who can reach `host`, the likeliest first."""
    if host not in EVERYWHERE:
        return (host,)
    name = socket.gethostname()
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(name, None)]
    except OSError:
        found = []
    plain = dict.fromkeys([name, *found])
    return tuple(text for text in plain if text not in LOOPBACK and "%" not in text)


def address_of(host: str, port: int) -> str:
    """What to open in a browser."""
    return f"http://{host_header(next(iter(names_of(host)), HOST), port)}"


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def serve_api(
    live: LiveEngine,
    access: Access,
    listen: Callable[[HTTPServer], object],
    ready: Callable[[], None],
    grace: float = GRACE,
    watch: Watch = on_signals,
) -> None:
    """Serve the API where `listen` puts the server until told to stop, which `watch` sees to; open
    answers have `grace` seconds to finish."""

    async def serve() -> None:
        server = Server(
            application(live, access),
            max_body_size=BODY,
            max_header_size=32 << 10,
            body_timeout=60,
            idle_connection_timeout=120,
        )
        stopping = Stopping()
        watch(asyncio.get_running_loop(), stopping.told)
        listen(server)
        ready()
        try:
            await stopping.asked.wait()
        finally:
            await stopping.drain(live, grace)
            server.stop()
            await server.close_all_connections()

    asyncio.run(serve())
