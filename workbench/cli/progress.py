"""How far a run is, told on stderr while the command line waits for it."""

import sys
import time

from engine.core.run import Progress, Run
from workbench.cli.output import say

PATIENCE = 2.0  # seconds of silence before anything is said
EVERY = 5.0  # seconds between lines where there is no terminal to rewrite one on
LOOK = 0.1
STOPPING = 0.5  # seconds that a stopped run has to come to its next step; the command ends then


def follow(run: Run, patience: float = STOPPING) -> Run:
    """Wait for `run` and say how far it is; raises what its driver raised. Ctrl-C stops it, which
    may take it `patience` seconds."""
    assert run.live is not None and run.thread is not None
    # Not the thread's join, see Run.wait.
    terminal, began, told = sys.stderr.isatty(), time.monotonic(), ""
    last = began + PATIENCE - EVERY
    try:
        while not run.ended.wait(LOOK):
            now = time.monotonic()
            line = sentence(run.live.progress, now)
            if now - began < PATIENCE or not line or line == told:
                continue
            if terminal:
                print(f"\r{line:<{len(told)}}", end="", file=sys.stderr, flush=True)
                told = line
            elif now - last >= EVERY:
                say(line)
                told, last = line, now
    except KeyboardInterrupt:
        run.stop()
        run.ended.wait(patience)
        raise
    finally:
        if terminal and told:
            print(f"\r{'':<{len(told)}}\r", end="", file=sys.stderr, flush=True)
    return run.wait()


def sentence(progress: Progress, now: float) -> str:
    """What is done, how far it is and how long it takes; "" before the run has said anything."""
    if not progress.what:
        return ""
    left = progress.left()
    if left is None:
        return f"{progress.what} … {now - progress.since:.0f} s"
    share = f"{progress.done:,.0f} of {progress.total:,.0f}"
    return f"{progress.what}: {share}, about {left:.0f} s left"
