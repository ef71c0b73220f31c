"""Ctrl-C, or a polite kill, stops the app and the API alike: cleanly, with exit code 0."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from workbench.api.server import free_port

# What a shell starts in the background, and what that starts, ignores Ctrl-C.
HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
START = f"{HEARD}; from workbench.cli.main import command; command()"
READY = f"""
{HEARD}
import workbench.cli.main as cli
parser = cli.parser
cli.parser = lambda: (print("ready", flush=True), parser())[1]  # the first thing that main does
cli.command()
"""
WAIT = 300.0  # seconds a server may take to start on a busy machine


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--no-browser"], signal.SIGINT),
        # Whatever test serves the app ends it by one, and asks for its exit code.
        pytest.param(["--no-browser"], signal.SIGTERM, marks=pytest.mark.slow),
        (["serve"], signal.SIGINT),
        # The app around a live engine: what the first and the third stop, at once.
        pytest.param(["serve", "--watch", "--no-browser"], signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_server_that_is_stopped_has_done_well(words, kind):
    command = [sys.executable, "-c", START, *words, "--port", str(free_port())]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    late = threading.Timer(WAIT, server.kill)
    late.start()
    try:
        said = next((line for line in server.stderr if "stop with Ctrl+C" in line), None)
        assert said is not None, "it never answered"
        server.send_signal(kind)
        out, err = server.communicate(timeout=300)
    finally:
        late.cancel()
        if server.poll() is None:
            server.kill()
            server.wait()
    assert server.returncode == 0, err
    assert out == "" and "Traceback" not in err


@pytest.mark.parametrize("later", [0.0, 0.4, 3.0])
def test_an_interrupted_command_leaves_no_traceback_and_no_process(later):
    """A modelled run of a million requests, interrupted at its start, in imports and at work."""
    words = ["run", "flover", "--set", "executor=modelled", "--set", "workload.count=1000000"]
    command = [sys.executable, "-c", READY, *words]
    child = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    late = threading.Timer(WAIT, child.kill)
    late.start()
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(later)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=WAIT)
    finally:
        late.cancel()
    assert child.returncode == 130 and "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)  # nobody of its session is left
