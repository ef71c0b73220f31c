"""A server that stops, or is full: every client hears so in words it cannot take for success."""

import asyncio
import http.client
import json
import threading
import time

import pytest

from engine.inference.requests.request import sampling
from tests.workbench.api.asking import TALK, TEXT, ask, served
from tests.workbench.toy_engine import toy_live
from workbench.api.drain import Stopping
from workbench.live import live as live_module

PATIENCE = 300.0


def begun(port, **more):
    """A request whose answer has begun."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    body = json.dumps({**TEXT, "max_tokens": 200, "stream": True, **more})
    link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    answer = link.getresponse()
    answer.read(20)
    return answer


def drained(live, grace):
    """Drain as a server does, in a loop of its own; the seconds it took."""

    async def drain():
        before = time.monotonic()
        await Stopping().drain(live, grace)
        return time.monotonic() - before

    return asyncio.run(drain())


def test_while_it_drains_the_open_answer_finishes_and_new_ones_are_put_off():
    live = toy_live(seconds=0.02)
    with served(live) as port:
        answer = begun(port, max_tokens=100)
        thread = threading.Thread(target=drained, args=(live, PATIENCE))
        thread.start()
        while not live.draining:
            time.sleep(0.01)
        for path, body in (("/v1/completions", TEXT), ("/v1/chat/completions", TALK)):
            status, text = ask(port, path, body)
            assert status == 503 and "closed" in json.loads(text)["error"]["message"]
        assert answer.read().rstrip().endswith(b"[DONE]")
        thread.join()


def test_after_its_grace_an_open_stream_ends_with_an_error_and_no_done():
    live = toy_live(seconds=0.05)
    with served(live) as port:
        answer = begun(port)
        drained(live, 0.1)
        text = answer.read().decode()
        last = json.loads(text.strip().rpartition("data: ")[2])
        assert "closed" in last["error"]["message"] and "[DONE]" not in text
        assert 'finish_reason": "stop' not in text and 'finish_reason": "length' not in text


def test_after_its_grace_a_whole_answer_is_a_503():
    live = toy_live(seconds=0.05)
    with served(live) as port:
        came = []
        wish = {**TEXT, "max_tokens": 200}
        thread = threading.Thread(
            target=lambda: came.append(ask(port, "/v1/completions", wish)), daemon=True
        )
        thread.start()
        while not live.busy:
            time.sleep(0.01)
        drained(live, 0.1)
        thread.join(PATIENCE)
        assert came[0][0] == 503 and "closed" in came[0][1]


def test_nothing_open_it_stops_at_once():
    live = toy_live()
    live.wait()
    assert drained(live, PATIENCE) < PATIENCE / 3


def test_the_second_signal_waits_for_nobody():
    live = toy_live(seconds=0.05)
    live.wait()
    live.ask([1], sampling(max_tokens=200), lambda piece: None)

    async def twice():
        stopping = Stopping()
        stopping.told()
        stopping.told()
        await stopping.drain(live, PATIENCE)

    before = time.monotonic()
    asyncio.run(twice())
    assert time.monotonic() - before < PATIENCE / 2


def test_a_full_queue_is_told_as_such(monkeypatch):
    monkeypatch.setattr(live_module, "WAITING", 1)
    live = toy_live(seconds=0.02)
    with served(live) as port:
        answer = begun(port)
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        link.request(
            "POST", "/v1/completions", json.dumps(TEXT), {"Content-Type": "application/json"}
        )
        refused = link.getresponse()
        assert refused.status == 429 and int(refused.headers["Retry-After"]) >= 1
        assert json.loads(refused.read())["error"]["type"] == "rate_limit_error"
        answer.close()


def test_a_stream_that_cannot_begin_is_refused_by_its_status():
    away = {"guidance": 2.0, "negative_prompt": "more than the prompt has", "prompt": "a"}
    with served(toy_live()) as port:
        for stream in (True, False):
            status, text = ask(port, "/v1/completions", {**TEXT, **away, "stream": stream})
            said = json.loads(text)["error"]["message"]
            assert status == 400 and "the negative prompt has" in said


@pytest.mark.parametrize("big", ["prompt", "negative_prompt", "stop", "logit_bias", "many"])
def test_what_is_large_is_refused_by_name(big):
    with served(toy_live()) as port:
        body = {
            "prompt": {**TEXT, "prompt": "a" * (1 << 20)},
            "negative_prompt": {**TEXT, "guidance": 2.0, "negative_prompt": "a" * (1 << 20)},
            "stop": {**TEXT, "stop": ["x"] * 100_000},
            "logit_bias": {**TEXT, "logit_bias": {str(n): 1 for n in range(5000)}},
            "many": {**TEXT, "prompt": list(range(400_000))},
        }[big]
        status, text = ask(port, "/v1/completions", body)
        name = "prompt" if big == "many" else big
        assert status == 400 and name in json.loads(text)["error"]["message"]
