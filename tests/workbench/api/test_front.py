"""The engine's process ends under open answers: each client hears it, the next one is answered."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from functools import partial

import pytest

from engine.core.errors import BadInput
from tests.workbench.api.asking import TALK, TEXT, ask
from tests.workbench.api.test_drain import PATIENCE, begun
from workbench.api import engine_process
from workbench.api.engine_process import EngineProcess
from workbench.api.front import serve_before
from workbench.api.server import free_port

MAIN = "tests.workbench.api.toy_process:engine"


class Front:
    """A server before a toy's process, in a loop and a thread of its own."""

    def __init__(self, folder):
        self.port, self.said, self.fault = free_port(), [], None
        self.process = EngineProcess(MAIN, {"port": self.port, "fault": ""}, str(folder))
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        assert self.ready.wait(PATIENCE)

    def _serve(self):
        try:
            asyncio.run(self._run())
        except BadInput as fault:
            self.fault = fault
        self.ready.set()

    async def _run(self):
        try:
            await self.process.start()
            await serve_before(
                self.process, "127.0.0.1", self.port, self.ready.set, self.said.append, self._watch
            )
        finally:
            await self.process.close()

    def _watch(self, loop, told):
        self.loop, self.told = loop, told

    def kill(self):
        os.kill(self.process.process.pid, signal.SIGKILL)

    def health(self):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        link.request("GET", "/health")
        return link.getresponse().status

    def until_healthy(self):
        until = time.monotonic() + PATIENCE
        while self.health() != 200:
            assert time.monotonic() < until
            time.sleep(0.05)

    def stop(self):
        self.loop.call_soon_threadsafe(self.told)
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    made = Front(tmp_path_factory.mktemp("front"))
    yield made
    made.stop()
    assert made.fault is None and made.process.process.returncode == 0
    assert not os.path.exists(made.process.place)


def test_what_is_asked_and_answered_is_passed_on(front):
    status, text = ask(front.port, "/v1/chat/completions", TALK)
    assert status == 200 and json.loads(text)["choices"]
    stream = begun(front.port, max_tokens=5)
    assert stream.read().rstrip().endswith(b"[DONE]")
    assert ask(front.port, "/v1/completions", {**TEXT, "prompt": 3.5})[0] == 400
    assert ask(front.port, "/nowhere", TEXT)[0] == 404
    assert ask(front.port, "/v1/completions", TEXT, {"Host": "elsewhere:80"})[0] == 403


def test_what_is_too_large_hears_so(front):
    status, text = ask(front.port, "/v1/completions", {**TEXT, "prompt": "a" * (6 << 20)})
    assert status == 413 and "error" in json.loads(text)


@pytest.mark.parametrize("length", ["-5", "+68", "0x10", "\u0665", "9" * 40, "5, 6", ""])
def test_a_length_that_is_none_is_the_clients_fault(front, length, caplog):
    with socket.create_connection(("127.0.0.1", front.port), PATIENCE) as link:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\n"
        link.sendall(f"{head}Content-Length: {length}\r\n\r\n{{}}".encode())
        link.settimeout(PATIENCE)
        assert link.recv(1 << 16).startswith(b"HTTP/1.1 400 ")
    assert ask(front.port, "/v1/completions", TEXT)[0] == 200
    assert not [said for said in caplog.records if said.exc_info]


def test_a_killed_engine_is_heard_of_by_each_client_and_comes_back(front):
    streams = [begun(front.port) for _ in range(3)]
    came = []
    whole = {**TEXT, "max_tokens": 200}
    asking = threading.Thread(target=lambda: came.append(ask(front.port, "/v1/completions", whole)))
    asking.start()
    while running(front.port) < 4:
        time.sleep(0.02)
    front.kill()
    for stream in streams:
        *before, last = stream.read().decode().strip().split("\n\n")
        assert "engine ended" in json.loads(last.removeprefix("data: "))["error"]["message"]
        assert "[DONE]" not in before and not any('"finish_reason": "' in each for each in before)
    asking.join(PATIENCE)
    assert came[0][0] == 503 and "engine ended" in came[0][1]
    link = http.client.HTTPConnection("127.0.0.1", front.port, timeout=PATIENCE)
    link.request("POST", "/v1/completions", json.dumps(TEXT))
    answer = link.getresponse()
    if answer.status != 200:  # which it is where this process is so slow that the other is back
        assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1
    front.until_healthy()
    assert ask(front.port, "/v1/completions", TEXT)[0] == 200
    assert "signal 9" in front.said[0] and "answers again" in front.said[1]


def running(port):
    """Requests in the engine's batch."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    link.request("GET", "/metrics")
    told = link.getresponse().read().decode()
    return int(float(re.search(r"^vllm:num_requests_running\S* (\S+)$", told, re.M)[1]))


def test_a_client_that_leaves_ends_its_request(front):
    begun(front.port).close()
    until = time.monotonic() + PATIENCE
    while running(front.port):
        assert time.monotonic() < until
        time.sleep(0.02)


class Away:
    """An engine that answers nobody and lives until it is asked to stop a second time."""

    def __init__(self):
        self.asked = 0

    async def connect(self):
        raise OSError

    async def ended(self):
        while self.asked < 2:
            await asyncio.sleep(0.01)
        return "asked"

    async def start(self):
        raise AssertionError

    def stop(self):
        self.asked += 1


def test_while_it_stops_nobody_hears_that_the_engine_comes_back():
    port, told = free_port(), []

    async def run():
        ready = asyncio.Event()
        kept = partial(serve_before, Away(), "127.0.0.1", port, ready.set, print)
        serving = asyncio.ensure_future(kept(lambda loop, stop: told.append(stop)))
        await ready.wait()
        heard = [await asyncio.to_thread(asked, port)]
        told[0]()
        heard.append(await asyncio.to_thread(asked, port))
        told[0]()
        await serving
        return heard

    before, after = asyncio.run(run())
    assert before == "the engine ended and is being started again"
    assert after == "the engine ended and is not started again: the server is stopping"


def asked(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    link.request("GET", "/health")
    return json.loads(link.getresponse().read())["error"]["message"]


def test_one_that_cannot_start_says_why(tmp_path):
    async def start(fault, main=MAIN):
        process = EngineProcess(main, {"port": 1, "fault": fault}, str(tmp_path))
        try:
            await process.start()
        finally:
            await process.close()

    with pytest.raises(BadInput, match="no such model"):
        asyncio.run(start("no such model"))


def test_one_that_ends_again_and_again_is_given_up(tmp_path):
    process = EngineProcess(MAIN, {"port": 1, "fault": ""}, str(tmp_path))
    process.ends.extend([1.0] * engine_process.OFTEN)
    with pytest.raises(BadInput, match="5 times within 60 s"):
        asyncio.run(process.start())


def test_one_that_has_served_and_is_killed_as_it_begins_is_started_again(tmp_path):
    process = EngineProcess("sys:exit", {}, str(tmp_path))
    with pytest.raises(BadInput, match="as it began"):
        asyncio.run(process.start())
    process.served = True
    with pytest.raises(BadInput, match="5 times within 60 s"):
        asyncio.run(process.start())


def test_it_ends_with_whoever_started_it(tmp_path):
    async def leave():
        process = EngineProcess(MAIN, {"port": 1, "fault": ""}, str(tmp_path))
        await process.start()
        process.process.stdin.close()  # as the system does for one that was killed
        return await asyncio.wait_for(process.process.wait(), PATIENCE)

    assert asyncio.run(leave()) == 0
