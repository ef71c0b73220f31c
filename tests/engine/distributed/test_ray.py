"""On a local Ray: pieces as tasks, ranks as actors, and what becomes of those that fail."""

import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.core.run import Run
from engine.distributed.faults import RankLost
from engine.distributed.ray_fleet import RayFleet, start
from engine.distributed.ray_ranks import launch_on_ray
from engine.training.trainer.config import TrainerConfig
from engine.training.trainer.run import run
from tests.conftest import ROOT
from tests.engine.distributed.test_fleet import WORK
from tests.engine.distributed.test_launch import alive
from tests.engine.models.small import raw
from tests.engine.training.trainer.test_faults import SHORT, TWO, losses

WORKS = "tests.engine.distributed.works"
STARTS = 3  # of a Ray, at most
SLOWER = 10  # its clock: it gives a node 30 s to start, which a busy machine does not do
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def local() -> Iterator[Any]:
    """A Ray of two processors on this machine for this file alone, or one that runs already.

    What its processes shall have in their environment is put into this one's: a runtime environment
    would have each started twice over, and none that waits for work be taken.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = pytest.importorskip("ray", reason="pip install 'parallel-workbench[ray]'")
    theirs = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    own = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 << 20}
    running = os.environ.get("RAY_ADDRESS")
    if running:
        own = {"runtime_env": {"env_vars": theirs}}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (theirs | {"RAY_USAGE_STATS_ENABLED": "0"}).items():
            patch.setenv(name, value)
        slow = SimpleNamespace(**vars(time))
        slow.monotonic = lambda: time.monotonic() / SLOWER
        for turn in range(STARTS):
            try:
                with pytest.MonkeyPatch.context() as clock:
                    clock.setattr("ray._private.node.time", slow)
                    ray.init(address=running or "local", log_to_driver=False, **own)
                break
            except Exception:  # a bare one: on a busy machine its agents start too late for itself
                ray.shutdown()
                if turn + 1 == STARTS:
                    raise
        yield ray
        ray.shutdown()


def test_each_piece_comes_back_whatever_becomes_of_the_others(local: Any) -> None:
    assert start() is local
    found = {done.number: done for done in RayFleet(limit=300).run(WORK, [3, "raise", 4, "die"])}
    assert {n: found[n].value["square"] for n in (0, 2)} == {0: 9, 2: 16}
    assert found[1].failed == "ValueError: no such thing"
    assert found[3].failed.startswith("ray: ")


@pytest.mark.slow  # training on actors, below, exchanges and finds what processes find
def test_ranks_as_actors_exchange_what_processes_do() -> None:
    pids: list[int] = []
    records = launch_on_ray(f"{WORKS}:ring", 2, 100, limit=300, seen=pids.extend)
    for record in records:
        assert (record.array("total") == 1.0).all()
    assert [len(record.received) for record in records] == [1, 1]
    gone(pids)


@pytest.mark.slow  # a piece that dies, above, is told each time
def test_a_killed_actor_is_named() -> None:
    """While others wait for it."""
    pids: list[int] = []
    given = {"who": 1, "where": "collective", "how": "kill"}
    with pytest.raises(RankLost, match="rank 1: ") as found:
        launch_on_ray(f"{WORKS}:fail", 2, given, limit=300, seen=pids.extend)
    assert found.value.rank == 1 and "\n" not in str(found.value)
    gone(pids)


@pytest.mark.slow  # what a rank raises is told whoever started it; by processes, each time
def test_what_an_actor_raises_is_told() -> None:
    given = {"who": 0, "where": "forward", "how": "raise"}
    with pytest.raises(RankLost, match="rank 0: ValueError: no such thing"):
        launch_on_ray(f"{WORKS}:fail", 2, given, limit=300)


@pytest.mark.slow  # signs of life are a process's, whoever started it
def test_a_stopped_actor_is_found_out() -> None:
    pids: list[int] = []

    def stop(seen: list[int]) -> None:
        pids.extend(seen)
        threading.Timer(0.5, lambda: os.kill(seen[1], signal.SIGSTOP)).start()

    with pytest.raises(RankLost, match="rank 1: hangs, no sign of life") as found:
        launch_on_ray(f"{WORKS}:deadlock", 2, None, limit=12, seen=stop)
    assert found.value.rank == 1
    gone(pids)


def gone(pids: list[int]) -> None:
    """No actor's process is left, soon."""
    assert len(pids) == 2
    until = time.monotonic() + 300
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in pids if alive(pid)]


def test_training_on_actors_finds_the_losses_of_processes(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    small = raw("llama-2", num_hidden_layers=1, hidden_size=16, intermediate_size=16)
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(small))
    np.save(tmp_path / "tokens.npy", np.tile(np.arange(2, 50, dtype=np.uint16), 20))
    found = {}
    for name, address in (("processes", None), ("actors", "")):
        config = TrainerConfig(
            model=str(tmp_path / "tiny"), data=str(tmp_path / "tokens.npy"), threads=1,
            out=str(tmp_path / name), training=SHORT, ray=address, parallel=TWO,
        )  # fmt: skip
        log = Run.execute(run, config).log
        times = [event.time for event in log]
        assert times == sorted(times)
        found[name] = losses(log)
        assert (tmp_path / name / "model.safetensors").is_file()
    assert len(found["actors"]) == 8 and found["actors"] == found["processes"]


@pytest.mark.slow  # a rank that is killed in training is, by processes, named each time
def test_a_training_actor_that_is_killed_is_named(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(raw("llama-2", num_hidden_layers=1)))
    np.save(tmp_path / "tokens.npy", np.tile(np.arange(2, 50, dtype=np.uint16), 20))
    config = TrainerConfig(
        model=str(tmp_path / "tiny"), data=str(tmp_path / "tokens.npy"), threads=1, parallel=TWO,
        out=str(tmp_path / "out"), training=SHORT, ray="", fault="1:backward:3",
    )  # fmt: skip
    with pytest.raises(RankLost, match="rank 1: ") as lost:
        Run.execute(run, config)
    assert lost.value.rank == 1
