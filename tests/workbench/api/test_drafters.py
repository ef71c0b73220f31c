"""A server that speculates: bodies of every odd kind, and clients that leave, by each drafter."""

import http.client
import json
import random
import threading
import time

import pytest

from engine.core.config import update
from engine.inference.config import InferenceConfig
from tests.workbench.api.asking import ask, served
from workbench.live.live import LiveEngine

MODEL = "stdlib-5m"
DRAFTERS = ("mirror", "collaborative")
OTHERS = ("none", "ngram", "draft_model")
PROMPTS = (
    "def ",
    "import os\n",
    "class A:\n    def __init__",
    "x = [1, 2, ",
    "",
    "\x00é日",
    [5] * 40,
)
ODD = (None, True, -1, 0, 1, 2, 7, 64, 1e9, 1e308, 10**400, float("nan"), "", "a", "\ud800", [],
       [[]],
       {}, {"5": 100}, {"x": 1}, {"5": float("nan")}, ["\n", ""], ["a"] * 17, [-1], [4096],
       [10**20],
       {"type": "json_object"}, {"type": "json_schema",
       "json_schema": {"schema": {"type": "x"}}})  # fmt: skip
FIELDS = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "n", "best_of", "stop", "seed",
       "stream",
          "echo", "logprobs", "prompt_logprobs", "logit_bias", "suffix", "response_format", "user",
          "presence_penalty", "repetition_penalty", "prompt", "model", "priority", "x")  # fmt: skip
WAIT = 60.0  # seconds in which what is left running must have ended, on a busy machine


def bodies(seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        body = {"model": MODEL, "prompt": draw.choice(PROMPTS), "max_tokens": draw.randint(1, 12)}
        body |= {name: draw.choice(ODD) for name in draw.sample(FIELDS, draw.randint(1, 3))}
        text = json.dumps(body).encode()
        yield text[: draw.randrange(len(text))] if draw.random() < 0.1 else text


def left(port, seed, count, leave=0.7):
    """Streams at once, most of whose clients leave after some bytes."""

    def client(number):
        draw = random.Random(f"{seed} {number}")
        body = {
            "model": MODEL,
            "prompt": draw.choice(PROMPTS[:4]),
            "max_tokens": 60,
            "stream": True,
        }
        body |= {"n": draw.choice((1, 1, 3)), "temperature": draw.choice((0, 1.0))}
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        link.request(
            "POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        if draw.random() < leave / 2:  # before any answer
            link.sock.close()
            return
        answer = link.getresponse()
        whole = draw.random() > leave / 2
        read = answer.read() if whole else answer.read(draw.randint(1, 900))
        ends.append(not whole or read.rstrip().endswith(b"[DONE]"))
        link.close()

    ends: list[bool] = []
    threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert all(ends)


def gauges(port):
    _, text = ask(port, "/metrics")
    names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
    lines = [line for line in text.splitlines() if line.startswith("vllm:")]
    return {n: float(line.rpartition(" ")[2]) for n in names for line in lines if f":{n}{{" in line}


@pytest.fixture(scope="module")
def greedy():
    """What an engine that does not speculate answers."""
    with served(live("none")) as port:
        return [answered(port, prompt) for prompt in PROMPTS]


def live(drafter):
    changes = {"model": MODEL, "pages": 200, "speculation": drafter}
    return LiveEngine(update(InferenceConfig(), changes), MODEL).start().wait(300)


def answered(port, prompt):
    status, body = ask(port, "/v1/completions",
                       {"model": MODEL, "prompt": prompt, "max_tokens": 16,
                       "temperature": 0})  # fmt: skip
    return status, json.loads(body)["choices"][0]["text"] if status == 200 else ""


@pytest.mark.parametrize(
    "drafter", [*DRAFTERS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_odd_bodies_and_clients_that_leave(drafter, greedy, full):
    with served(live(drafter)) as port:
        seen = set()
        for body in bodies(drafter, 400 if full else 30):
            status, answer = ask(port, "/v1/completions", body)
            seen.add(status)
            assert status in (200, 400, 404, 429), (status, body[:300], answer[:300])
            assert "Traceback" not in answer
            if status != 200:
                assert "\n" not in json.loads(answer)["error"]["message"]
        assert {200, 400} <= seen
        for turn in range(6 if full else 1):
            left(port, f"{drafter} {turn}", 60 if full else 16)
        until = time.monotonic() + WAIT
        while any(gauges(port).values()) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(gauges(port).values())
        assert [answered(port, prompt) for prompt in PROMPTS] == greedy
