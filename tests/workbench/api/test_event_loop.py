"""No request, however large, keeps the event loop from the others: no large body is read on it, and
nothing that runs on it takes more than a tenth of a second of processor time.

Of the loop's own thread, so that a busy machine says nothing. Tokenizer and engine are
stand-ins.
"""

import asyncio
import random
import threading
import time

import pytest

from tests.workbench.api.asking import TALK, ask, served
from tests.workbench.toy_engine import toy_live
from workbench.api import body as body_module
from workbench.benches._large_requests import KINDS, MOST, body

HELD = 0.1  # seconds of processor time
READ = 1 << 15  # bytes of one that is read on the loop for once
FEW, MANY = 1, 12  # drawn sizes of each kind, beside the largest


@pytest.fixture(scope="module")
def port():
    with served(toy_live()) as found:
        ask(found, "/v1/chat/completions", TALK)
        yield found


class Seen(threading.local):
    """Whether this thread runs a loop's callback; of all loops the most seconds of processor time
    that one took, and the most bytes of a body that one read."""

    on_loop = False
    longest, largest = [0.0], [0]  # every thread's


@pytest.fixture
def seen(monkeypatch):
    seen, run, read = Seen(), asyncio.Handle._run, body_module.read_json
    seen.longest[0] = seen.largest[0] = 0

    def timed(handle):
        seen.on_loop, begun = True, time.thread_time()
        run(handle)
        seen.on_loop = False
        seen.longest[0] = max(seen.longest[0], time.thread_time() - begun)

    def noted(text):
        if seen.on_loop:
            seen.largest[0] = max(seen.largest[0], len(text))
        return read(text)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    monkeypatch.setattr(body_module, "read_json", noted)
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_no_request_holds_the_loop(port, seen, kind, full):
    draw = random.Random(kind)
    for size in [MOST, *(draw.randint(1 << 12, MOST) for _ in range(MANY if full else FEW))]:
        path, fields = KINDS[kind](size)
        seen.longest[0] = 0.0
        status, _ = ask(port, path, body("toy", fields))
        assert status in (200, 400, 404, 413, 429), (size, status)
        assert 0 < seen.longest[0] < HELD, (size, status)
        assert seen.largest[0] <= body_module.SMALL, (size, status)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_on_the_loop_is_seen(port, seen, kind, monkeypatch):
    async def here(work, *given):
        return work(*given)

    monkeypatch.setattr(asyncio, "to_thread", here)
    path, fields = KINDS[kind](READ)
    data = body("toy", fields)
    ask(port, path, data)
    assert seen.largest[0] == len(data)


def test_what_holds_the_loop_is_seen(seen):
    async def busy():
        until = time.thread_time() + 2 * HELD
        while time.thread_time() < until:
            pass

    asyncio.run(busy())
    assert seen.longest[0] > HELD
