"""Ctrl-C, or a polite kill, stops the app and the API alike: cleanly, with exit code 0."""

import signal
import socket
import subprocess
import sys
import threading

import pytest

START = "from workbench.cli.main import command; command()"
WAIT = 120.0  # seconds a server may take to start on a busy machine


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--no-browser"], signal.SIGINT),
        (["--no-browser"], signal.SIGTERM),
        (["serve"], signal.SIGINT),
        (["serve", "--watch", "--no-browser"], signal.SIGINT),
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
        out, err = server.communicate(timeout=30)
    finally:
        late.cancel()
        if server.poll() is None:
            server.kill()
            server.wait()
    assert server.returncode == 0, err
    assert out == "" and "Traceback" not in err
