"""Many streaming clients at once, of whom some leave and some hardly read: nobody loses a token.

1,000 of them with --full, and a soak: rounds of clients for as long as --soak says, after which
memory, descriptors, threads, tasks and cache pages are where they were.
"""

import asyncio
import gc
import os
import sys
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from tests.engine.inference.audit import Reader
from tests.reliability.clients import Crowd
from tests.workbench.api.asking import served
from tests.workbench.toy_engine import toy_live
from workbench.live import live as live_module

FEW, MANY = 40, 1000
LONG = 20_000  # events after which a run gives way: its log is the memory that comes and goes
PAGE = os.sysconf("SC_PAGESIZE")
PATIENCE = 300.0
MEGABYTE = 1e6
RESTS = 3.0  # of the soak's full form: seconds between rounds for each that one took
ANY = 10**6


@dataclass(frozen=True)
class Held:
    """What a process holds; threads beside those of the loop's pool, which it begins as it needs
    them and bounds itself."""

    memory: int
    descriptors: int
    threads: int
    tasks: int


def held(loop: asyncio.AbstractEventLoop) -> Held:
    gc.collect()
    with open("/proc/self/statm") as sizes:
        memory = int(sizes.read().split()[1]) * PAGE
    tasks = asyncio.run_coroutine_threadsafe(_tasks(), loop).result()
    threads = sum(not one.name.startswith("asyncio_") for one in threading.enumerate())
    return Held(memory, len(os.listdir("/proc/self/fd")), threads, tasks)


async def _tasks() -> int:
    return len(asyncio.all_tasks())


def quiet(live, loop: asyncio.AbstractEventLoop, before: Held) -> Held:
    """What is held once nobody is served any more; no more than `before` where that can be."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        now = held(loop)
        if not live.busy and now.tasks <= before.tasks and now.descriptors <= before.descriptors:
            return now
        time.sleep(0.05)
    return held(loop)


def pages_are_back(live) -> None:
    """Every page of the present run is free or cached, as its events say."""
    reader = Reader(live.config.pages)
    reader.read(live.run.log.since(0))
    assert len(reader.free) + len(reader.parents) == live.config.pages
    assert not any(reader.tables.values())


def all_well(came: dict[str, int], count: int) -> None:
    assert set(came) <= {"right", "left"} and sum(came.values()) == count, came


@pytest.fixture
def server(monkeypatch):
    """A toy's live engine behind the API: (live, loop, port)."""
    monkeypatch.setattr(live_module, "LONG", LONG)
    live, loops = toy_live(), []
    with served(live, loops=loops) as port:
        yield live, loops[0], port


def test_no_token_is_lost_whoever_leaves_or_reads_slowly(server, full):
    live, loop, port = server
    count = MANY if full else FEW
    with Crowd(port) as crowd:
        all_well(crowd.round(count=count, seed=1, slow=0.05 if full else 0.0), count)
        first = quiet(live, loop, Held(ANY, ANY, ANY, 2))
        for seed in range(2, 5) if full else (2,):
            all_well(crowd.round(count=count, seed=seed, slow=0.0), count)
        last = quiet(live, loop, first)
    assert last.tasks <= first.tasks and last.descriptors <= first.descriptors
    assert last.threads <= first.threads
    pages_are_back(live)
    if full:
        assert last.memory <= 1.02 * first.memory, (first, last)


@pytest.mark.slow
def test_slow_readers_cost_the_others_nothing(server):
    """Processor time of the server: the wall's would be a judgement of what else there is to do."""
    live, loop, port = server
    spent = {0.0: [], 0.05: []}
    with Crowd(port) as crowd:
        crowd.round(count=100, seed=0, leaving=0.0, slow=0.0)
        for seed in range(3):
            for slow, seconds in spent.items():
                begun = time.process_time()
                all_well(crowd.round(count=400, seed=seed, leaving=0.0, slow=slow), 400)
                seconds.append(time.process_time() - begun)
    assert min(spent[0.05]) <= 1.1 * min(spent[0.0]), spent


def test_a_soak_leaves_everything_where_it_was(server, request, full):
    live, loop, port = server
    seconds = request.config.getoption("--soak") if full else 1.0
    samples: list[tuple[float, Held]] = []
    begun = time.monotonic()
    with Crowd(port) as crowd:
        while len(samples) < 3 or time.monotonic() - begun < seconds:
            count = 60 if full else 10
            asked = time.monotonic()
            all_well(crowd.round(count=count, seed=len(samples), slow=0.0), count)
            first = samples[0][1] if samples else Held(ANY, ANY, ANY, 2)
            samples.append((time.monotonic() - begun, quiet(live, loop, first)))
            time.sleep(RESTS * (time.monotonic() - asked) if full else 0.0)
    pages_are_back(live)
    first, last = samples[0][1], samples[-1][1]
    assert (last.descriptors, last.tasks) == (first.descriptors, first.tasks)
    assert last.threads <= first.threads
    if full:
        half = samples[len(samples) // 2 :]
        times, memory = np.array([(at, one.memory) for at, one in half]).T
        slope = np.polyfit(times, memory, 1)[0] * 3600 / MEGABYTE
        sys.stdout.write(f"{len(samples)} rounds in {seconds:g} s, {slope:.2f} MB an hour\n")
        assert slope < 1.0, f"{slope:.2f} MB an hour over {seconds / 2:g} s"
