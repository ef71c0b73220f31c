"""Forks and joins over HTTP: our API says what the engine in process says; faults are one line."""

import http.server
import json
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.run import Run
from engine.reasoning.fork_join.fork_join import ForkJoinConfig, run
from engine.reasoning.fork_join.http_service import HttpService
from engine.reasoning.fork_join.trajectory import Limits, Marks, Trajectory, fork_and_join
from engine.reasoning.solving.scores import scores_of
from tests.workbench.api.asking import served
from workbench.live.live import LiveEngine


def woven(service, problems, marks=None):
    told: list[tuple[str, str, str]] = []
    limits = Limits(segment=200, threads=8)
    found = [
        Trajectory(f"p{n}", prompt, limits, marks or Marks(), lambda *t: told.append(t))
        for n, prompt in enumerate(problems)
    ]
    with service:
        list(fork_and_join(found, service))
    return found, told


def test_our_api_says_what_the_engine_in_process_says():
    config = ForkJoinConfig(problems=3)
    log = Run.execute(run, config).log
    prompts = [p.prompt + config.begin for p in config.task.problems("test", 3)]
    live = LiveEngine(update(config.serving(), {"pages": 512}), "sums").start().wait()
    with served(live) as port:
        service = HttpService(f"http://127.0.0.1:{port}/v1", "sums")
        found, told = woven(service, prompts)
        wrong, heard = woven(HttpService(f"http://127.0.0.1:{port}/v1", "other"), prompts[:1])
    assert not told
    scores = scores_of(log)
    assert [one.tokens for one in found] == scores["tokens"].tolist()
    assert [one.critical for one in found] == scores["critical"].tolist()
    assert [one.forks for one in found] == scores["forks"].tolist()
    sent = dict(line.split("\1") for line in log.blobs["prompts"].tobytes().decode().split("\0"))
    assert {name: text for one in found for name, text in one.prompts.items()} == sent
    assert "answers 404" in wrong[0].fault and "'sums'" in heard[0][2]


class Moody(http.server.BaseHTTPRequestHandler):
    """A server of three threads, of which the second meets whatever `mood` says."""

    mood = "500"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["prompt"]
        if prompt.endswith("<Thread>2:"):
            self._sulk()
        elif prompt.endswith("</Parallel>"):
            self._say("end")
        else:
            self._say("t" if prompt.endswith(":") else "<Outlines>1:a 2:b 3:c")

    def _sulk(self):
        if self.mood == "500":
            self._answer(500, {"error": {"message": "out of memory"}})
        elif self.mood == "nonsense":
            self._answer(200, ["no", "completion"])
        elif self.mood == "filtered":
            self._say("t", "content_filter")
        elif self.mood == "elsewhere":  # it would be given the key
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/v1")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.mood == "deep":
            self._sent(b"[" * 100_000)
        elif self.mood == "endless":
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            with suppress(OSError):
                while True:
                    self.wfile.write(b" " * 65536)
        else:
            self.close_connection = True  # hangs up without a word

    def _say(self, text, reason="stop"):
        choice = {"text": text, "finish_reason": reason, "index": 0}
        self._answer(200, {"choices": [choice], "usage": {"completion_tokens": 2}})

    def _answer(self, status, body):
        self._sent(json.dumps(body).encode(), status)

    def _sent(self, sent, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


@contextmanager
def moody(mood):
    handler = type("Handler", (Moody,), {"mood": mood})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("mood", "line"),
    [
        ("500", "answers 500: out of memory"),
        ("nonsense", "answers with what is no completion"),
        ("filtered", "ends an answer by 'content_filter'"),
        ("hang up", "cannot be asked: "),
        ("elsewhere", "answers 302"),
        ("endless", "over the limit body_bytes"),
        ("deep", "answers with what is no completion"),
    ],
)
def test_a_thread_that_fails_leaves_the_others(mood, line):
    with moody(mood) as url:
        (one,), told = woven(HttpService(url, "any"), ["q"])
    assert one.said.endswith(
        "<Thread>1:t</Thread><Thread>2:</Thread><Thread>3:t</Thread></Parallel>end"
    )
    (fault,) = told
    assert fault[0] == "p0.2" and line in fault[2]
    assert not one.fault


def test_nobody_at_that_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (one,), _ = woven(HttpService(f"http://127.0.0.1:{port}/v1", "any"), ["q"])
    assert "cannot be asked" in one.fault and str(port) in one.fault
    with pytest.raises(BadInput, match="no address"):
        HttpService("ftp:nowhere", "any")
