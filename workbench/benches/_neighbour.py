"""A served model and one who uses it: how long each of its tokens and answers takes to come."""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.api.server import HOST, free_port

START = "from workbench.cli.main import command; command()"
OWN = "own"  # what the served model is called
WAIT = 300.0  # seconds, for any answer
TOKENS = 200  # of each of the neighbour's streams


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """`workbench serve` of the model in `folder`, called OWN; its port."""
    port = free_port()
    words = [sys.executable, "-c", START, "serve", "--model", str(folder), "--name", OWN,
             "--port", str(port)]  # fmt: skip
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        if not any("stop with Ctrl+C" in line for line in process.stderr):
            raise RuntimeError("the server has ended before it answered")
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        yield port
    finally:
        process.terminate()
        process.wait()


def ask(port: int, path: str, sent: bytes) -> int:
    """The status of one request's answer, once it has all come."""
    link = http.client.HTTPConnection(HOST, port, timeout=WAIT)
    link.request("POST", path, sent, {"Content-Type": "application/json"})
    answer = link.getresponse()
    answer.read()
    link.close()
    return answer.status


class Neighbour:
    """`with Neighbour(port) as one:` … asks all the while: one stream after the other, and short
    chats. Then `tokens` has the seconds between each two of a stream's events and to its first, and
    `chats` those of each chat."""

    def __init__(self, port: int, model: str = OWN) -> None:
        self.port, self.model = port, model
        self.tokens: list[float] = []
        self.chats: list[float] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._stream, self._chat)]

    def __enter__(self) -> "Neighbour":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _stream(self) -> None:
        while not self._over.is_set():
            link, before = self._sent("/v1/completions", prompt="def", max_tokens=TOKENS,
                                      ignore_eos=True, stream=True)  # fmt: skip
            answer = link.getresponse()
            while answer.readline() and not self._over.is_set():
                answer.readline()  # the empty line that ends an event
                now = time.perf_counter()
                self.tokens.append(now - before)
                before = now
            link.close()

    def _chat(self) -> None:
        said = [{"role": "user", "content": "What does a list of numbers add up to?"}]
        while not self._over.is_set():
            link, before = self._sent("/v1/chat/completions", messages=said, max_tokens=1)
            link.getresponse().read()
            self.chats.append(time.perf_counter() - before)
            link.close()

    def _sent(self, path: str, **fields: Any) -> tuple[http.client.HTTPConnection, float]:
        link = http.client.HTTPConnection(HOST, self.port, timeout=WAIT)
        begun = time.perf_counter()
        sent = json.dumps({"model": self.model, **fields}).encode()
        link.request("POST", path, sent, {"Content-Type": "application/json"})
        return link, begun
