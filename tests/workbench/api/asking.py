"""The HTTP API served over a live engine on a free port, and one request to it."""

import asyncio
import http.client
import json
import socket
import threading
from contextlib import contextmanager

from tornado.httpserver import HTTPServer

from workbench.api.access import access
from workbench.api.handlers import BODY, application

TEXT = {"model": "toy", "prompt": "abc", "max_tokens": 4, "temperature": 0}
TALK = {"model": "toy", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 3}


@contextmanager
def served(live, token="", loops=None, keys=()):
    """The API over `live` on a free port of loopback; gives the port. Its loop joins `loops`."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
    if loops is not None:
        loops.append(loop)

    async def serve():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        rules = access("127.0.0.1", port, token, keys=keys)
        server = HTTPServer(application(live, rules), max_body_size=BODY)
        server.listen(port, "127.0.0.1")
        found.append(port)
        ready.set()
        await stop.wait()
        server.stop()
        await server.close_all_connections()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    ready.wait(300)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
        live.close()


def ask(port, path, body=None, headers=None, method=None):
    """(status, body) of one request; `body` is sent as JSON unless it is bytes."""
    sent = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"} if sent is not None else {}
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    link.request(
        method or ("GET" if sent is None else "POST"), path, sent, {**kind, **(headers or {})}
    )
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text
