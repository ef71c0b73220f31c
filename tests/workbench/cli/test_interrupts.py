"""Ctrl-C reaches the command even where a module that is being imported swallows it."""

import ctypes
import importlib
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver

import pytest

from workbench.cli import app
from workbench.cli.main import INTERRUPTED, main
from workbench.interrupts import end_server, heard

SWALLOWS = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
import time
until = time.process_time() + {more}
while time.process_time() < until:
    pass
"""


@pytest.fixture(autouse=True)
def hears_interrupts():
    """As a shell's foreground command does; one begun in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def made(name, more):
        (tmp_path / f"{name}.py").write_text(SWALLOWS.format(more=more))
        return name

    return made


def test_an_interrupt_that_an_import_swallows_comes_again(module):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(KeyboardInterrupt), heard():
        importlib.import_module(module("swallows_and_goes_on", 20))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGVTALRM)) == before


SETS_UP = """
import signal, time
signal.raise_signal(signal.SIGINT)  # as within C that this body calls
done = time.process_time()
def spin():
    while time.process_time() < done + 20:
        pass
spin()
"""


def test_an_interrupt_waits_for_what_an_import_sets_up(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sets_up.py").write_text(SETS_UP)
    begun = time.process_time()
    with pytest.raises(KeyboardInterrupt) as raised, heard():
        importlib.import_module("sets_up")
    assert any(entry.name == "spin" for entry in raised.traceback), "raised in the body itself"
    assert time.process_time() - begun < 1.0


def test_it_comes_no_more_once_the_command_is_left(module):
    with heard():
        importlib.import_module(module("swallows", 0))
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_who_listens_in_a_way_of_their_own_goes_on_so():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        with heard():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [1]


def within_a_callback(strike):
    """Called from C, as compilers call back: what is raised there goes nowhere."""
    ctypes.CFUNCTYPE(None)(strike)()


def within_a_finaliser(strike):
    class Ends:
        def __del__(self):
            strike()

    Ends()


@pytest.mark.parametrize("within", [within_a_callback, within_a_finaliser])
def test_an_interrupt_that_is_swallowed_comes_again_and_leaves_no_traceback(within, capfd):
    hook, begun = sys.unraisablehook, time.process_time()
    with pytest.raises(KeyboardInterrupt), heard():
        within(lambda: signal.raise_signal(signal.SIGINT))
        while time.process_time() < begun + 20:
            pass
    assert time.process_time() < begun + 1 and sys.unraisablehook is hook
    assert not capfd.readouterr().err


def test_other_errors_that_are_swallowed_are_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda fault: told.append(fault.exc_type))
    with heard():
        within_a_callback(lambda: 1 / 0)
    assert told == [ZeroDivisionError]


class Struck:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_within_the_body_of_a_class_is_one(monkeypatch, capsys):
    """Python 3.11 makes a RuntimeError of it."""

    def run(args):
        type("Body", (), {"field": Struck()})
        raise AssertionError("swallowed")

    monkeypatch.setattr(app, "run", run)
    assert main([]) == INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_the_server_of_processes_goes_with_an_interrupted_command(monkeypatch):
    asleep = subprocess.Popen(["sleep", "60"])
    for number in (None, asleep.pid):
        monkeypatch.setattr(forkserver._forkserver, "_forkserver_pid", number)
        end_server()
    assert asleep.wait(30) == -signal.SIGKILL
    end_server()  # which has gone by now
