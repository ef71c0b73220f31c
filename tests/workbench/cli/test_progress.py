"""Progress of a run on stderr: said when it takes long, with what is known of the time left."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Progress, Run
from tests.workbench.toy import TOY
from workbench.cli import output as cli_output
from workbench.cli import run as cli_run
from workbench.cli.main import main
from workbench.cli.output import follow, say, sentence


def test_what_is_said_is_a_text_or_an_event_and_turns_no_terminal(capsys):
    say("red \x1b[31m")
    say(Mark(0.0, "recipe", "seen", "\x1b[31m"))
    said = capsys.readouterr().err
    assert "\x1b" not in said and "red \\x1b[31m" in said and "Mark(" in said


def test_a_sentence_says_what_is_known():
    assert sentence(Progress(), 1.0) == ""
    opening = Progress("opening the model gpt2-xl", 0, 0, 10.0)
    assert sentence(opening, 17.2) == "opening the model gpt2-xl … 7 s"
    serving = Progress("serving requests", 1500, 3000, time.monotonic() - 4)
    assert sentence(serving, 0.0) == "serving requests: 1,500 of 3,000, about 4 s left"


@pytest.fixture
def hasty(monkeypatch):
    for name, seconds in (("PATIENCE", 0.05), ("EVERY", 0.1), ("LOOK", 0.01)):
        monkeypatch.setattr(cli_output, name, seconds)


def test_a_long_run_says_how_far_it_is_and_keeps_stdout_for_results(hasty, monkeypatch, capsys):
    monkeypatch.setattr(cli_run, "study", lambda slug: TOY)
    assert main(["run", "flover", "--set", "count=20", "--set", "wait=0.02"]) == 0
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.startswith("ticks: ")]
    assert len(lines) >= 2 and lines[0].endswith("s left")
    assert "ticks: " not in said.out


def test_a_short_run_says_nothing(capsys):
    follow(Run.start(TOY.driver, TOY.config))
    assert capsys.readouterr().err == ""


def test_on_a_terminal_one_line_is_rewritten_and_taken_away(hasty, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    slow = TOY.config.model_copy(update={"count": 20, "wait": 0.02})
    follow(Run.start(TOY.driver, slow))
    said = capsys.readouterr().err
    assert "\n" not in said and said.count("\rticks: ") > 1
    assert said.endswith("\r") and not said.split("\r")[-2].strip()


def test_opening_a_model_is_told(hasty, capsys):
    def slow_to_open(config, live):
        live.report("opening the model gpt2-xl", 0, 0)
        time.sleep(0.4)
        TOY.driver(config, live)

    follow(Run.start(slow_to_open, TOY.config))
    assert "opening the model gpt2-xl …" in capsys.readouterr().err


def test_a_run_s_fault_is_raised_to_who_follows_it():
    def fails(config, live):
        raise BadInput("no such thing")

    with pytest.raises(BadInput, match="no such thing"):
        follow(Run.start(fails, TOY.config))


def test_an_interrupt_stops_the_run(monkeypatch):
    run = Run.start(TOY.driver, TOY.config.model_copy(update={"count": 1000, "wait": 0.02}))
    real, calls = run.ended.wait, []

    def wait(seconds=None):
        calls.append(seconds)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(seconds)

    monkeypatch.setattr(run.ended, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        follow(run)
    assert run.log.closed.reason == "stopped"
    assert threading.current_thread() is not run.thread


def test_an_interrupted_wait_still_waits_for_the_last_step():
    """CPython 3.11 takes a thread whose join was interrupted for ended, though it still works."""
    saved, working = threading.Event(), threading.Event()

    def slow_to_end(config, live):
        TOY.driver(config, live)
        working.set()
        time.sleep(0.5)
        saved.set()

    # A shell that starts us in the background has us ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run = Run.start(slow_to_end, TOY.config)
        working.wait(300)
        timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            follow(run, 60.0)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert saved.is_set()


def test_work_goes_on_where_nobody_reads_what_is_said():
    """As behind `2>&1 | head`, or in a terminal that has closed."""
    code = "from workbench.cli.output import say; say('a'); say('b'); print('done')"
    reads, writes = os.pipe()
    os.close(reads)
    found = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writes)
    os.close(writes)
    assert (found.returncode, found.stdout) == (0, b"done\n")
