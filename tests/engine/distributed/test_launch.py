"""Ranks as processes: what they exchange is recorded, and whoever fails is named, in time."""

import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess

import numpy as np
import pytest
import torch
import torch.distributed as dist

from engine.core.errors import BadInput
from engine.core.events import Move
from engine.distributed import launch as launch_module
from engine.distributed.faults import PeerGone, RankLost, told
from engine.distributed.launch import launch, loaded_works, place_from, require_single
from engine.distributed.merge import merged
from engine.distributed.rank import LOOPBACK, Meeting, Place, facing, store
from engine.training.parallel import rank_main
from tests.engine.distributed import works

SIZE = 1000


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_work_that_this_process_has_loaded_is_loaded_for_its_ranks_once():
    loaded = loaded_works()
    assert rank_main.__name__ in loaded
    assert "engine.core.log" not in loaded and works.__name__ not in loaded


def test_every_transfer_is_in_the_log_once_and_in_time_order():
    torch.ones(512, 512) @ torch.ones(512, 512)  # the caller's threads run before ranks are made
    limit = 300
    records = launch(works.ring, 3, SIZE, limit=limit)
    for record in records:
        assert (record.array("total") == np.full(SIZE, 3.0)).all()
        assert int(record.array("threads")) == 1
    events = merged(records)
    assert [e.time for e in events] == sorted(e.time for e in events)
    moves = [e for e in events if isinstance(e, Move)]
    assert sorted((m.source, m.target) for m in moves) == sorted(
        (f"rank {a}", f"rank {(a + 1) % 3}") for a in range(3) for _ in range(2)
    )
    assert {m.bytes for m in moves} == {4 * SIZE + 8}
    assert all(0 <= m.start <= m.time < limit for m in moves)


@pytest.mark.parametrize("where", ["forward", "collective"])
def test_a_killed_rank_ends_the_run_and_is_named(where):
    given = {"who": 1, "where": where, "how": "kill"}
    with pytest.raises(RankLost, match=f"rank 1: was killed by SIGKILL while in {where}") as found:
        launch(works.fail, 3, given, limit=300)
    assert found.value.rank == 1
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("where", ["forward", "collective"])
def test_a_hanging_rank_ends_the_run_within_its_limit_and_is_named(where):
    given = {"who": 2, "where": where, "how": "hang"}
    start = time.monotonic()
    with pytest.raises(RankLost, match=f"rank 2: hangs, still in {where}"):
        launch(works.fail, 3, given, limit=5)
    assert time.monotonic() - start >= 5


def test_what_a_rank_raises_is_told_in_one_line():
    with pytest.raises(RankLost, match="rank 0: ValueError: no such thing while in forward"):
        launch(works.fail, 2, {"who": 0, "where": "forward", "how": "raise"}, limit=300)


def test_ranks_that_all_wait_are_called_a_deadlock():
    with pytest.raises(RankLost, match=r"deadlock.*rank 0 waiting for rank 1 \(news\) in exchange"):
        launch(works.deadlock, 2, limit=5)


def test_no_process_is_left_when_a_person_stops():
    seen = []

    class Stop(Exception):
        pass

    def poll() -> None:
        import multiprocessing

        seen.extend(p.pid for p in multiprocessing.active_children())
        if len(set(seen)) == 2:
            raise Stop

    with pytest.raises(Stop):
        launch(works.deadlock, 2, limit=300, poll=poll)
    assert seen
    assert not [pid for pid in seen if alive(pid)]
    done = [int(r.array("pid")) for r in launch(works.pids, 2, limit=300)]
    assert os.getpid() not in done
    assert not [pid for pid in done if alive(pid)]


def test_a_server_of_processes_that_stands_still_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(launch_module, "ENDING", 0.1)
    (record,) = launch(works.deaf_to, 1, limit=300)
    left_to_the_launcher = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}  # all that go to groups
    assert left_to_the_launcher <= set(record.array("ignored").tolist())
    pid = forkserver._forkserver._forkserver_pid

    def stop_it():
        os.kill(pid, signal.SIGSTOP)
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            launch(works.deadlock, 2, limit=300, poll=stop_it)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_nowhere_to_meet_is_one_line():
    within = timedelta(seconds=1)
    with pytest.raises(BadInput, match=r"ranks cannot meet there \(.*\); is the loopback") as found:
        store(LOOPBACK, 1, 1, False, within)
    with pytest.raises(BadInput, match="check MASTER_ADDR and MASTER_PORT, and that"):
        store("nowhere.invalid", 1, 1, False, within)
    with pytest.raises(BadInput, match=r"nowhere.invalid: cannot be reached from here"):
        facing("nowhere.invalid", 1)
    assert "\n" not in str(found.value)


def test_connections_go_by_the_address_that_faces_the_others_and_who_stays_away_is_missed():
    assert facing("127.0.0.9", 1) in (LOOPBACK, "127.0.0.9")  # whatever this machine is called
    held = dist.TCPStore(LOOPBACK, 0, None, True, timedelta(seconds=9), wait_for_workers=False)
    meeting = Meeting(Place(0, 2, "localhost", held.port), 0.2)
    with pytest.raises(PeerGone, match="no connection from 127.0.0.1: "):
        meeting.group("pair", 0, 2)


def test_what_torch_says_of_a_connection_is_told_without_its_advice():
    said = "[/a/gloo/pair.cc:537] Read error [::1]:3: Reset. This is typically caused by you.\nMore"
    assert told(RuntimeError(said)) == "Read error [::1]:3: Reset"


def test_a_port_in_use_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"port {port}: .*choose another"):
            launch(works.pids, 2, port=port)


def test_a_place_comes_from_what_torchrun_sets():
    given = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    place = place_from(given)
    assert (place.rank, place.ranks, place.port, place.hosted) == (1, 4, 29500, False)
    with pytest.raises(BadInput, match="RANK"):
        place_from({})


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process is started anew")
def test_a_rank_that_nobody_is_there_to_start_is_one_line(monkeypatch):
    def start(process):
        raise EOFError("unexpected EOF")

    monkeypatch.setattr(ForkServerProcess, "start", start)
    with pytest.raises(RankLost, match="^rank 0: not started, the server of processes has ended"):
        launch(works.pids, 2)


@pytest.mark.parametrize("name", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_one_of_several_that_something_else_started_does_not_train_alone(name):
    with pytest.raises(BadInput, match=f"{name}=2: this is one process of 2"):
        require_single({name: "2", "RANK": "1"})
    for said in ("", "1", "x"):
        require_single({name: said})


ORPHANS = """
import multiprocessing, sys
from engine.distributed.launch import launch
from tests.engine.distributed import works

def told():
    pids = [p.pid for p in multiprocessing.active_children()]
    if len(pids) == 2:
        print(*pids, flush=True)

if __name__ == "__main__":
    launch(works.deadlock, 2, limit=300, poll=told)
"""


LEAVES = """
import multiprocessing, threading
from engine.distributed.launch import launch
from tests.engine.distributed import works

if __name__ == "__main__":
    here = threading.Semaphore(0)
    given = {"limit": 600, "tell": lambda record: here.release()}
    threading.Thread(target=launch, args=(works.linger, 2), kwargs=given, daemon=True).start()
    here.acquire(), here.acquire()
    print(*(process.pid for process in multiprocessing.active_children()))
"""


def test_a_caller_that_ends_takes_its_ranks_with_it(tmp_path, root):
    script = tmp_path / "caller.py"
    script.write_text(LEAVES)
    # Ranks heed no SIGTERM, which is how multiprocessing would end them, and wait for it.
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=root, check=True,
        timeout=300, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    pids = [int(pid) for pid in ended.stdout.split()]
    assert len(pids) == 2 and not [pid for pid in pids if alive(pid)]


def test_no_process_is_left_when_the_caller_is_killed(tmp_path, root):
    script = tmp_path / "caller.py"
    script.write_text(ORPHANS)
    caller = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert caller.stdout is not None
    pids = [int(pid) for pid in caller.stdout.readline().split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    caller.kill()
    caller.wait()
    caller.stdout.close()
    until = time.monotonic() + 300
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in pids if alive(pid)]


TORCHRUN = """
import os
from engine.distributed.launch import place_from
from engine.distributed.rank import join
from tests.engine.distributed import works

rank = join(place_from(os.environ), 30)
works.ring(rank, 10)
rank.transport.finish()
assert (rank.record.array("total") == 1.0).all()
print("rank", rank.rank, "moved", len(rank.transport.received), flush=True)
"""


@pytest.mark.slow  # loads torch three times
def test_torchrun_starts_ranks_too(tmp_path, root):
    script = tmp_path / "work.py"
    script.write_text(TORCHRUN)
    ran = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1",
         "--nproc-per-node=2", str(script)],
        capture_output=True, text=True, cwd=root, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.split("\n")[:2]) == ["rank 0 moved 1", "rank 1 moved 1"]
