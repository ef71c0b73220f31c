"""Ranks of whom one sends garbage, doubles, disorders, stops or leaves; connections half open.

Found in time and named. 1,000 seeded runs of two to four ranks with --full: real gloo groups over
loopback whose ranks are threads here. No run is left in a deadlock.
"""

import random
import re
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from engine.core.errors import BadInput
from engine.distributed.faults import Garbled, PeerGone, RankLost
from engine.distributed.launch import launch
from engine.distributed.rank import LOOPBACK, Meeting, Place
from engine.distributed.transport import Shape, Transport
from tests.engine.distributed import works
from tests.engine.distributed.deaf import Ends, deafen, descriptors
from tests.engine.distributed.works import BadGroup

FEW, MANY = 16, 1000
ROUNDS = 6
LIMIT = 3.0  # seconds that a message may take where one does not come
PATIENCE = 300.0  # where nobody does
ENDS: tuple[Ends, ...] = ("accepted", "called", "both")  # of a connection, that hear nothing more
CHANGED = ("garbage", "doubled", "disordered")
KINDS = ("none", *CHANGED, "stops", "slow", "leaves", "half open")


class Play:
    """One seed's run. `found`: what each rank raised; `said`: what it last waited for;
    `got`: how many messages came to it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.ranks, self.size = draw.randint(2, 4), draw.randint(1, 2000)
        self.who, self.when = draw.randrange(self.ranks), draw.randrange(ROUNDS - 1)
        self.ends = draw.choice(ENDS)
        self.limit = LIMIT if self.kind in ("stops", "slow", "half open") else PATIENCE
        self.found: dict[int, Exception] = {}
        self.said, self.got = [""] * self.ranks, [0] * self.ranks
        self.over = threading.Event()

    def run(self, port: int, name: str) -> None:
        self.port, self.before = port, descriptors()
        self.met = threading.Barrier(self.ranks)
        threads = [
            threading.Thread(target=self.rank, args=(rank, port, name), daemon=True)
            for rank in range(self.ranks)
        ]
        for thread in threads:
            thread.start()
        others = [thread for rank, thread in enumerate(threads) if rank != self.who]
        for thread in others if self.kind == "stops" else threads:
            thread.join(PATIENCE + 30)
            assert not thread.is_alive(), (name, self.kind, self.said)
        self.over.set()
        for thread in threads:
            thread.join(PATIENCE + 30)

    def rank(self, rank: int, port: int, name: str) -> None:
        place = Place(rank, self.ranks, LOOPBACK, port)
        group = BadGroup(Meeting(place, self.limit).group(name, rank, self.ranks))
        transport = Transport(group, rank, self.ranks)
        self.met.wait(PATIENCE)  # as `join` has ranks: one may leave before another is connected

        def say(text: str) -> None:
            self.said[rank] = text or self.said[rank]

        transport.say = say
        try:
            self.rounds(rank, transport, group)
        except (Garbled, PeerGone) as fault:
            self.found[rank] = fault.with_traceback(None)
            fault.__context__ = None  # nothing that holds the group
        finally:
            group.group = None  # its connections close

    def rounds(self, rank: int, transport: Transport, group: BadGroup) -> None:
        after, before = (rank + 1) % self.ranks, (rank - 1) % self.ranks
        for turn in range(ROUNDS):
            if rank == self.who and turn == self.when:
                if self.kind in CHANGED:
                    group.kind = self.kind
                elif self.kind == "stops":
                    self.over.wait()
                    return
                elif self.kind == "slow":
                    time.sleep(2 * self.limit)
                elif self.kind == "leaves":
                    return
                elif self.kind == "half open":
                    assert deafen(self.before, self.port, self.ends)
            held = torch.full((self.size,), float(rank))
            transport.send(after, [held], f"turn_{turn}")
            coming = transport.receive(before, [Shape((self.size,))], f"turn_{turn}")
            (told,) = transport.take(coming)
            assert (told == before).all()
            self.got[rank] += 1
        transport.finish()

    def judge(self) -> None:
        """Whoever should notice did, and names who and what."""
        after = (self.who + 1) % self.ranks
        if self.kind == "none":
            assert not self.found
            return
        fault = self.found[after]
        if self.kind in CHANGED:
            assert isinstance(fault, Garbled) and fault.peer == self.who
            assert f"of rank {self.who} (turn_{self.when}) is " in str(fault)
        else:
            assert isinstance(fault, PeerGone) and fault.peer == self.who
            # What was on its way when a connection went half open may have come, or not: what is
            # named is the first that did not.
            turn = f"turn_{self.got[after] if self.kind == 'half open' else self.when}"
            assert re.search(rf"lost rank {self.who} \({turn}: ", fault.told)
            if self.kind != "leaves":  # its end may be seen before anybody waits for it
                assert re.search(rf"waiting for rank {self.who} \({turn}\)", self.said[after])
        quiet = set() if self.kind in ("slow", "half open") else {self.who}
        assert set(self.found) | quiet == set(range(self.ranks)), "somebody took it for an end"


@pytest.fixture(scope="module")
def port():
    store = dist.TCPStore(
        LOOPBACK, 0, None, True, timedelta(seconds=PATIENCE), wait_for_workers=False
    )
    yield store.port
    del store


@pytest.mark.parametrize("part", range(2))
def test_a_bad_rank_is_found_in_time_and_named(port, part, full):
    count = (MANY if full else FEW) // 2
    for seed in range(part * count, (part + 1) * count):
        play = Play(seed)
        play.run(port, f"run {seed}")
        try:
            play.judge()
        except (AssertionError, KeyError) as fault:
            told = {rank: repr(each) for rank, each in play.found.items()}
            raise AssertionError((seed, play.kind, play.who, told, play.said)) from fault


@pytest.mark.parametrize("kind", CHANGED)
def test_a_launched_run_says_which_rank_which_message_and_where(kind):
    told = r"message \d+ of rank 1 \(news_2\) is .* while waiting for rank 1 \(news_2\) in exchange"
    with pytest.raises(RankLost, match=told) as found:
        launch(works.garbled, 2, {"who": 1, "kind": kind}, limit=300)
    assert "\n" not in str(found.value) and isinstance(found.value, BadInput)
