"""The HTTP API over a toy engine: answers in the OpenAI shape, every wrong request a 4xx."""

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from tornado.httpserver import HTTPServer

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.events import Branch
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Built
from tests.workbench.toy_engine import ToyExecutor, ToyTokenizer, toy_live
from workbench.api.access import access, read_keys
from workbench.api.handlers import BODY, SWALLOWED, application
from workbench.live.live import LiveEngine

TOKEN = "a token of many letters"
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
    ready.wait(60)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
        live.close()


@pytest.fixture(scope="module")
def port():
    with served(toy_live()) as found:
        yield found


def ask(port, path, body=None, headers=None, method=None):
    """(status, body) of one request; `body` is sent as JSON unless it is bytes."""
    sent = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"} if sent is not None else {}
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.request(
        method or ("GET" if sent is None else "POST"), path, sent, {**kind, **(headers or {})}
    )
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text


def test_models_are_listed(port):
    status, text = ask(port, "/v1/models")
    assert status == 200
    assert json.loads(text)["data"][0]["id"] == "toy"


def test_a_completion_is_answered(port):
    status, text = ask(port, "/v1/completions", {**TEXT, "logprobs": 1})
    answer = json.loads(text)
    assert status == 200
    assert answer["object"] == "text_completion"
    (choice,) = answer["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("defg", "length")
    assert choice["logprobs"]["tokens"] == list("defg")
    assert choice["logprobs"]["token_logprobs"] == [-0.25] * 4
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert answer["usage"] == {**counts, "prompt_tokens_details": {"cached_tokens": 0}}


def test_prompts_and_samples_have_their_indices(port):
    status, text = ask(port, "/v1/completions", {**TEXT, "prompt": ["a", "x"], "n": 2})
    choices = json.loads(text)["choices"]
    assert [choice["text"] for choice in choices] == ["bcde", "bcde", "yzab", "yzab"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]


def test_a_chat_is_answered(port):
    status, text = ask(port, "/v1/chat/completions", TALK)
    answer = json.loads(text)
    assert status == 200
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "def"}


def test_a_stream_says_once_why_it_was_refused(port):
    wish = {**TEXT, "n": 200, "stream": True}
    text = ask(port, "/v1/completions", wish)[1]
    assert "[DONE]" not in text
    found = json.loads(text.strip().removeprefix("data: "))
    assert "200 samples" in found["error"]["message"]


def chunks(text):
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_completion_is_streamed(port):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    status, text = ask(port, "/v1/completions", {**TEXT, **options})
    *found, last = chunks(text)
    assert status == 200
    assert "".join(chunk["choices"][0]["text"] for chunk in found) == "defg"
    assert found[-1]["choices"][0]["finish_reason"] == "length"
    assert last["usage"]["completion_tokens"] == 4


def test_a_chat_is_streamed_with_its_role_first(port):
    found = chunks(ask(port, "/v1/chat/completions", {**TALK, "stream": True})[1])
    deltas = [chunk["choices"][0]["delta"] for chunk in found]
    assert deltas[0]["role"] == "assistant"
    assert all("role" not in delta for delta in deltas[1:])
    assert "".join(delta.get("content", "") for delta in deltas) == "def"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "not JSON"),
        ({**TEXT, "model": "other"}, 404, "other"),
        ({**TEXT, "temperature": -1}, 400, "temperature"),
        ({**TEXT, "bogus": 1}, 400, "bogus"),
        ({**TEXT, "prompt": [99999]}, 400, "token outside"),
        ({**TEXT, "prompt": "a" * 300}, 400, "300 tokens"),
        ({**TEXT, "logit_bias": {"40": 1}}, 400, "outside 0 to 39"),
        ({**TEXT, "logit_bias": {"40": 1}, "stream": True}, 400, "outside 0 to 39"),
        ({**TEXT, "max_tokens": True}, 400, "max_tokens"),
        ({**TEXT, "n": 200}, 400, "200 samples"),
    ],
)
def test_a_wrong_request_gets_one_line(port, body, status, says):
    got, text = ask(port, "/v1/completions", body)
    assert got == status
    assert says in json.loads(text)["error"]["message"]


def test_other_addresses_and_methods_are_refused(port):
    assert ask(port, "/v1/images", TEXT)[0] == 404
    assert ask(port, "/")[0] == 404
    assert ask(port, "/v1/completions")[0] == 405
    assert ask(port, "/v1/completions", TEXT, {"Content-Type": "text/plain"})[0] == 415


def test_a_bias_on_the_last_token_of_the_vocabulary_is_taken(port):
    status, text = ask(port, "/v1/completions", {**TEXT, "logit_bias": {"39": 1}})
    assert status == 200, text


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_body_too_large_is_refused_once_it_is_sent(port, path):
    for size in (BODY + 1, 3 * BODY):
        status, text = ask(port, path, b" " * size)
        assert status == 413
        assert json.loads(text)["error"]["message"] == f"body: {size} bytes; at most {BODY}"
    assert ask(port, path, b" " * BODY)[0] == 400, "as large as may be, and no JSON"


def test_a_body_too_large_in_chunks_of_unknown_number_is_refused(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    pieces = (b" " * 65536 for _ in range(BODY // 65536 + 1))
    kind = {"Content-Type": "application/json"}
    link.request("POST", "/v1/completions", pieces, kind, encode_chunked=True)
    assert link.getresponse().status == 413
    link.close()


def test_a_body_far_too_large_is_refused_before_it_is_sent(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.putrequest("POST", "/v1/completions")
    link.putheader("Content-Type", "application/json")
    link.putheader("Content-Length", str(SWALLOWED + 1))
    link.endheaders()
    assert link.getresponse().status == 413
    link.close()


def test_a_stranger_s_body_is_not_read_before_he_is_refused(port):
    status, text = ask(port, "/v1/completions", b" " * BODY, {"Host": "evil.example"})
    assert status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": "localhost.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_foreign_hosts_and_origins_are_refused(port, headers):
    assert ask(port, "/v1/models", headers=headers)[0] == 403


def test_its_own_origin_is_allowed(port):
    assert ask(port, "/v1/models", headers={"Origin": f"http://localhost:{port}"})[0] == 200


def test_a_token_is_asked_for_where_one_is_set():
    with served(toy_live(), TOKEN) as port:
        assert ask(port, "/v1/models")[0] == 401
        assert ask(port, "/v1/models", headers={"Authorization": "Bearer wrong"})[0] == 401
        assert ask(port, "/v1/models", headers={"Authorization": f"bearer {TOKEN}"})[0] == 200


def test_each_client_with_a_key_has_its_own_prefixes(tmp_path):
    (tmp_path / "keys").write_text("# NAME KEY\nann key-of-ann-0123456\nbob key-of-bob-0123456\n")
    live, keys = toy_live(page_size=4), read_keys(tmp_path / "keys")

    def cached(port, key):
        headers = {"Authorization": f"Bearer {key}"}
        status, text = ask(port, "/v1/completions", {**TEXT, "prompt": "abcdefghij"}, headers)
        assert status == 200
        return json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"]

    with served(live, keys=keys) as port:
        assert ask(port, "/v1/models")[0] == 401
        (_, ann), (_, bob) = keys
        assert [cached(port, key) for key in (ann, ann, bob, bob)] == [0, 8, 0, 8]
    for text in ("ann", "ann a b", "", "a k\na j", "a k\nb k"):
        (tmp_path / "keys").write_text(text)
        with pytest.raises(BadInput, match="keys"):
            read_keys(tmp_path / "keys")
    with pytest.raises(BadInput, match="key of ann"):
        access("127.0.0.1", 8000, keys=(("ann", "short"),))


def test_a_full_queue_and_a_long_wait_are_told_to_come_again():
    live = LiveEngine(InferenceConfig(pages=64, max_running=1), "toy", queue=3, patience=0.3)
    live.built = Built(ToyExecutor(0.05), WallClock(), ToyTokenizer())
    with served(live.start()) as port:
        links = []
        for _ in range(3):
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            body = json.dumps({**TEXT, "max_tokens": 60, "stream": bool(len(links) % 2)})
            link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            links.append(link)
            until = time.monotonic() + 60
            while len(live._open) + len(live._waiting) < len(links) and time.monotonic() < until:
                time.sleep(0.005)
        status, text = ask(port, "/v1/completions", TEXT)
        assert status == 429 and "3 requests are open" in text
        answered = [link.getresponse() for link in links]
        assert [one.status for one in answered] == [200, 429, 429]
        assert all(one.getheader("Retry-After") for one in answered[1:])
        assert "no room" in answered[1].read().decode()


def test_beyond_loopback_a_token_is_required():
    with pytest.raises(BadInput, match="token is required"):
        access("0.0.0.0", 8000)
    with pytest.raises(BadInput, match="at least 16"):
        access("0.0.0.0", 8000, "short")
    assert access("0.0.0.0", 8000, TOKEN, ("box:8000",)).hosts >= {"box:8000", "localhost:8000"}


def test_a_client_that_goes_away_aborts_its_request():
    live = toy_live(seconds=0.02)
    with served(live) as port:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({**TEXT, "max_tokens": 200, "stream": True})
        link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        link.getresponse().read(20)
        link.sock.shutdown(socket.SHUT_RDWR)
        link.close()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            states = [branch.state for branch in live.run.log.of(Branch)]
            if "aborted" in states:
                break
            time.sleep(0.02)
        assert "aborted" in states
