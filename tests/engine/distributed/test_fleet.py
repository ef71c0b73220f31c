"""Fleets: every piece has a result, one that fails is told and the others go on."""

import multiprocessing
import socket
import time

import pytest

from engine.core.errors import BadInput
from engine.distributed import ray_fleet
from engine.distributed.fleet import Processes
from tests.engine.distributed.test_launch import alive

WORK = "tests.engine.distributed.pieces:square"


def test_each_piece_comes_back_whatever_becomes_of_the_others() -> None:
    pieces = [3, "raise", 4, "die", "refuse", 5, "interrupt"]
    found = {done.number: done for done in Processes(2, limit=300).run(WORK, pieces)}
    assert sorted(found) == list(range(7))
    assert found[6].value["square"] == 36, "the parent decides"
    assert {n: found[n].value["square"] for n in (0, 2, 5)} == {0: 9, 2: 16, 5: 25}
    assert len({found[n].value["pid"] for n in (0, 2, 5)}) == 3
    assert found[1].failed == "ValueError: no such thing"
    assert found[3].failed == "its process ended with exit code -9"
    assert found[4].failed == "that cannot be"
    assert not [n for n in (0, 2, 5) if alive(found[n].value["pid"])]


def test_a_piece_that_takes_too_long_is_ended_and_the_others_go_on() -> None:
    found = {done.number: done for done in Processes(1, limit=10).run(WORK, ["hang", 2])}
    assert "no result within 10 s" in found[0].failed
    assert found[1].value["square"] == 4


def test_whoever_stops_reading_leaves_no_process() -> None:
    running = Processes(2, limit=300).run(WORK, [1, "hang", "hang", 4])
    first = next(running)
    running.close()
    assert first.value["square"] == 1
    until = time.monotonic() + 300
    while multiprocessing.active_children() and time.monotonic() < until:
        time.sleep(0.05)
    assert not multiprocessing.active_children()


def test_no_jobs_are_none() -> None:
    with pytest.raises(BadInput, match="at least one"):
        Processes(0)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:99999", "here:there", "[::1", "..:5"],
)
def test_a_cluster_that_is_not_there_is_one_line_before_ray_is_loaded(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_fleet, "find_spec", lambda name: name)
    monkeypatch.setattr(ray_fleet, "importlib", None)
    with socket.socket() as bound:  # and not listening: nobody else takes it meanwhile
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(BadInput, match="cannot join") as found:
            ray_fleet.start(address.format(port))
    assert "\n" not in str(found.value)
