"""No request, however large, keeps the event loop from the others: nothing that runs on it takes
more than a tenth of a second of processor time.

Of the loop's own thread, so that a busy machine says nothing. Tokenizer and engine are
stand-ins.
"""

import asyncio
import json
import random
import time

import pytest

from tests.workbench.api.asking import ask, served
from tests.workbench.toy_engine import toy_live

HELD = 0.1  # seconds of processor time
MOST = 3_700_000  # bytes of a body, about; over 4 MiB it is refused unread
FEW, MANY = 1, 12  # drawn sizes of each kind, beside the largest


def deep(depth):
    return json.loads("[" * depth + "]" * depth)


def said(**more):
    return "/v1/completions", {"model": "toy", "prompt": "abc", "max_tokens": 2, **more}


def talked(*texts, **more):
    messages = [{"role": "user", "content": text} for text in texts]
    return "/v1/chat/completions", {"model": "toy", "messages": messages, "max_tokens": 2, **more}


KINDS = {  # each by how many bytes, about
    "a prompt": lambda n: said(prompt="ab c" * (n // 4)),
    "prompts": lambda n: said(prompt=["ab " * (n // 192)] * 64),
    "token numbers": lambda n: said(prompt=[7] * (n // 3)),
    "many short prompts": lambda n: said(prompt=["a"] * (n // 5)),
    "stop texts": lambda n: said(stop=["x"] * (n // 5)),
    "one stop text": lambda n: said(stop="x" * n),
    "logit bias": lambda n: said(logit_bias={str(at): 1 for at in range(n // 12)}),
    "a negative prompt": lambda n: said(guidance=2.0, negative_prompt="ab " * (n // 3)),
    "a suffix": lambda n: said(suffix="ab " * (n // 3)),
    "a schema": lambda n: said(response_format={"type": "json_schema", "json_schema": {"schema": {
        "properties": {f"p{at}": {"type": "integer"} for at in range(n // 30)}}}}),
    "lists in lists": lambda n: said(user=deep(min(n // 2, 900))),
    "unknown fields": lambda n: said(**{f"f{at}": 1 for at in range(n // 11)}),
    "a name": lambda n: said(model="x" * n),
    "a message": lambda n: talked("ab " * (n // 3)),
    "messages": lambda n: talked(*(["a"] * (n // 40))),
    "tools": lambda n: talked("a", tools=[{"type": "function", "function": {"name": f"f{at}"}}
                                          for at in range(n // 60)]),
    "letters of four bytes": lambda n: said(prompt="\U0001f600" * (n // 12)),
    "to tokenize": lambda n: ("/tokenize", {"prompt": "ab c" * (n // 4)}),
    "to detokenize": lambda n: ("/detokenize", {"model": "toy",
                                                 "tokens": [7] * min(n // 3, 1_045_000)}),
    "to embed": lambda n: ("/v1/embeddings", {"model": "toy", "input": ["ab " * (n // 192)] * 64}),
    "to respond to": lambda n: ("/v1/responses", {"model": "toy", "input": "ab " * (n // 3)}),
}  # fmt: skip


@pytest.fixture(scope="module")
def port():
    with served(toy_live()) as found:
        ask(found, *talked("warm"))
        yield found


@pytest.fixture
def longest(monkeypatch):
    """[the most seconds of processor time that a callback of any loop took]."""
    took, run = [0.0], asyncio.Handle._run

    def timed(handle):
        begun = time.thread_time()
        run(handle)
        took[0] = max(took[0], time.thread_time() - begun)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    return took


@pytest.mark.parametrize("kind", KINDS)
def test_no_request_holds_the_loop(port, longest, kind, full):
    draw = random.Random(kind)
    for size in [MOST, *(draw.randint(1 << 12, MOST) for _ in range(MANY if full else FEW))]:
        path, body = KINDS[kind](size)
        data = json.dumps(body).encode()
        longest[0] = 0.0
        status, _ = ask(port, path, data)
        assert status in (200, 400, 404, 413, 429), (size, status)
        assert 0 < longest[0] < HELD, (size, status)


def test_what_holds_the_loop_is_seen(longest):
    async def busy():
        until = time.thread_time() + 2 * HELD
        while time.thread_time() < until:
            pass

    asyncio.run(busy())
    assert longest[0] > HELD
