"""The HTTP API over a toy engine: answers in the OpenAI shape, every wrong request a 4xx."""

import http.client
import json
import socket
import time

import pytest

from engine.core.clock import WallClock
from engine.core.events import Branch, Token
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Built
from tests.workbench.api.asking import TALK, TEXT, ask, served
from tests.workbench.toy_engine import ToyExecutor, ToyTokenizer, toy_live
from workbench.live.live import LiveEngine


@pytest.fixture(scope="module")
def port():
    with served(toy_live()) as found:
        yield found


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


def test_log_probabilities_without_likeliest_tokens_are_told(port):
    whole = json.loads(ask(port, "/v1/completions", {**TEXT, "logprobs": 0})[1])
    told = whole["choices"][0]["logprobs"]
    assert told["token_logprobs"] == [-0.25] * 4
    assert told["top_logprobs"] == [{letter: -0.25} for letter in "defg"]
    talk = json.loads(ask(port, "/v1/chat/completions", {**TALK, "logprobs": True})[1])
    content = talk["choices"][0]["logprobs"]["content"]
    assert [(entry["token"], entry["top_logprobs"]) for entry in content] == [
        (letter, []) for letter in "def"
    ]


def test_offsets_of_a_stream_go_on_where_the_last_piece_ended(port):
    text = ask(port, "/v1/completions", {**TEXT, "logprobs": 1, "stream": True})[1]
    told = [chunk["choices"][0]["logprobs"] for chunk in chunks(text)]
    assert [at for some in told if some for at in some["text_offset"]] == [0, 1, 2, 3]


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


def test_a_body_that_says_it_is_compressed_is_refused_and_not_read_as_plain(port):
    status, text = ask(port, "/v1/completions", TEXT, {"Content-Encoding": "br"})
    assert status == 415 and "send it plain" in text


def test_other_addresses_and_methods_are_refused(port):
    assert ask(port, "/v1/images", TEXT)[0] == 404
    assert ask(port, "/")[0] == 404
    assert ask(port, "/v1/completions")[0] == 405
    assert ask(port, "/v1/completions", TEXT, {"Content-Type": "text/plain"})[0] == 415


def test_what_is_read_answers_head_and_a_wrong_method_hears_the_right_ones(port):
    assert ask(port, "/health", method="HEAD") == (200, "")
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    link.request("HEAD", "/v1/completions")
    answer = link.getresponse()
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    link.close()


def test_a_bias_on_the_last_token_of_the_vocabulary_is_taken(port):
    status, text = ask(port, "/v1/completions", {**TEXT, "logit_bias": {"39": 1}})
    assert status == 200, text


def test_a_full_queue_and_a_long_wait_are_told_to_come_again():
    live = LiveEngine(InferenceConfig(pages=64, max_running=1), "toy", queue=3)
    live.built = Built(ToyExecutor(0.05), WallClock(), ToyTokenizer())
    with served(live.start()) as port:
        links = []
        for _ in range(3):
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            body = json.dumps({**TEXT, "max_tokens": 60, "stream": bool(len(links) % 2)})
            link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            links.append(link)
            until = time.monotonic() + 300
            while len(live._open) + len(live._waiting) < len(links) and time.monotonic() < until:
                time.sleep(0.005)
        status, text = ask(port, "/v1/completions", TEXT)
        assert status == 429 and "3 requests are open" in text
        while not list(live.run.log.of(Token)) and time.monotonic() < until:
            time.sleep(0.005)
        live.patience = 0.3  # only now, when the first has begun: on a busy machine that may last
        answered = [link.getresponse() for link in links]
        assert [one.status for one in answered] == [200, 429, 429]
        assert all(one.getheader("Retry-After") for one in answered[1:])
        assert "no room" in answered[1].read().decode()


def test_a_client_that_goes_away_aborts_its_request():
    live = toy_live(seconds=0.02)
    with served(live) as port:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        body = json.dumps({**TEXT, "max_tokens": 200, "stream": True})
        link.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        link.getresponse().read(20)
        link.sock.shutdown(socket.SHUT_RDWR)
        link.close()
        until = time.monotonic() + 300
        while time.monotonic() < until:
            states = [branch.state for branch in live.run.log.of(Branch)]
            if "aborted" in states:
                break
            time.sleep(0.02)
        assert "aborted" in states
