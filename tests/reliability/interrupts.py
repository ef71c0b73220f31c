"""Commands interrupted at random points of their work.

`python -m tests.reliability.interrupts FIRST LAST`: points FIRST up to, not including, LAST.

Each is a fork of this process, which has everything imported, in a session of its own. A point is
so much processor time of the command; there it gets SIGINT, as from Ctrl-C. Prints one JSON line a
point: command, point, exit code, seconds until it was gone, and what was wrong, with what the
command said.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from workbench.cli import main as cli

MODELLED = ["--set", "executor=modelled", "--set", "workload.count=200000"]
LONG = (
    ["run", "flover", *MODELLED],
    ["run", "flover", "--set", "sampling.max_tokens=4000", "--set", "workload.count=64"],
    ["generate", "def main(", "--max-tokens", "100000"],
    ["check", "flover", "batchllm"],
    ["train", "stdlib-5m", "--fast", "--out", "made"],
)
QUICK = ["catalogue"]
LATEST = 3.0  # seconds of processor time before which every point lies
WAIT = 300.0
WRONG = 99  # exit code where the call after an interrupted one fails
FAULT = 98  # where the command let an error out
SAID = 2000  # first and last characters of what a command said that are told


def child(words: list[str], point: float, told: int, again: bool) -> None:
    """The command, interrupted; what it says goes to a file. Never returns, never raises: within
    an error this process would clear away the folder and go on as the one that forked it."""
    code = FAULT
    try:
        code = _ran(words, point, told, again)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _ran(words: list[str], point: float, told: int, again: bool) -> int:
    """Its exit code."""

    def strike(_: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(told, json.dumps(_now()).encode())
        listener = signal.getsignal(signal.SIGINT)
        assert callable(listener)
        listener(signal.SIGINT, frame)  # as if it had come where this one came

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPROF, strike)
    signal.setitimer(signal.ITIMER_PROF, point)
    if again:  # a notebook's kernel lives on: the next call works
        code = cli.main(words)
        if code == cli.INTERRUPTED and cli.main(QUICK):
            code = WRONG
        signal.setitimer(signal.ITIMER_PROF, 0)  # it may have ended before its point
        return code
    sys.argv = ["workbench", *words]
    try:
        cli.command()
    except SystemExit as end:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return end.code if isinstance(end.code, int) else int(bool(end.code))


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def tried(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    words, point = LONG[seed % len(LONG)], draw.uniform(0.01, LATEST)
    again = draw.random() < 0.3
    ours, theirs = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        pid = os.fork()
        if not pid:
            os.setsid()
            os.chdir(folder)
            file = os.open(said, os.O_CREAT | os.O_WRONLY)
            os.dup2(file, 1), os.dup2(file, 2)
            child(words, point, theirs, again)
        os.close(theirs)
        code, spent = _waited(pid)
        struck = json.loads(os.read(ours, 100) or "null")
        os.close(ours)
        text = said.read_text(errors="replace")
        left = _left(pid)
    wall, cpu = (time.monotonic() - struck[0], spent - struck[1]) if struck else (0.0, 0.0)
    wrong = []
    if struck and code != cli.INTERRUPTED:
        wrong.append(f"exit code {code}")
    if "Traceback" in text:
        wrong.append("a traceback")
    if left:
        wrong.append("a process is left")
    if wrong:
        wrong.append(f"{text[:SAID]} … {text[-SAID:]}" if len(text) > 2 * SAID else text)
    return {"words": words[:2], "point": point, "again": again, "code": code, "wall": wall,
            "cpu": cpu, "struck": bool(struck), "wrong": wrong}  # fmt: skip


def _waited(pid: int) -> tuple[int, float]:
    """Exit code and processor seconds; killed where it never ends."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        done, status, use = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), use.ru_utime + use.ru_stime
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status, use = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), use.ru_utime + use.ru_stime


def _left(session: int) -> bool:
    """Whether anybody of that session still lives; ends them."""
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    return True


def main() -> None:
    cli.parser()  # imports every command
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        sys.stdout.write(json.dumps(tried(seed)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
