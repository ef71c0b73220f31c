"""A rank that stands still ends with its launcher, too."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

CODE = """
import multiprocessing, os, signal, sys, time
from engine.core.confined.parting import end_with_launcher
def stands_still():
    end_with_launcher()
    os.write(1, b"%d\\n" % os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)
if __name__ == "__main__":
    for _ in range(2):
        multiprocessing.get_context("forkserver").Process(target=stands_still).start()
    time.sleep(60)
"""


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "gone"


def wait_for(pids: list[int], states: tuple[str, ...]) -> bool:
    until = time.monotonic() + 30
    while any(state(pid) not in states for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_processes_that_stand_still_go_with_their_launcher(tmp_path: Path, root: Path) -> None:
    (tmp_path / "go.py").write_text(CODE)
    launcher = subprocess.Popen(
        [sys.executable, str(tmp_path / "go.py")], stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert launcher.stdout is not None
    pids = [int(launcher.stdout.readline()) for _ in range(2)]
    assert wait_for(pids, ("T",))
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    assert wait_for(pids, ("gone", "Z"))  # none may be there to ask after the dead
