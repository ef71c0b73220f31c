"""A JupyterLab of a test's own: settings, kernels' files and folder in one temporary place."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.labextension.build import BUILT

CELL = 'from workbench import open_study\n\nopen_study("flover")'
WAIT = 300.0  # seconds the lab may take to start on a busy machine
QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
OWN = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
       "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")  # fmt: skip


@contextmanager
def running(
    folder: Path, base: str = "/", program: str = "jupyterlab", *more: str
) -> Iterator[tuple[str, str]]:
    """Address (with `base`, no / at its end) and token of a lab that serves `folder`/work."""
    places = {name: str(folder / name) for name in OWN}
    (folder / "work").mkdir(exist_ok=True)
    # The extension of this tree, whatever an installation made of an earlier one.
    shown = folder / "JUPYTER_PATH/labextensions/parallel-workbench"
    shown.parent.mkdir(parents=True, exist_ok=True)
    if not shown.exists():
        shown.symlink_to(BUILT, target_is_directory=True)
    places["JUPYTER_PATH"] = str(folder / "JUPYTER_PATH")
    quiet = folder / "JUPYTERLAB_SETTINGS_DIR/@jupyterlab/apputils-extension"
    quiet.mkdir(parents=True, exist_ok=True)
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    words = [sys.executable, "-m", program, "--no-browser", "--allow-root"]
    words += ["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    words += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder / 'work'}"]
    words += [f"--ServerApp.base_url={base}", *more]
    if program == "jupyterlab":
        words += ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url="]
    said = folder / "said.txt"
    with said.open("w") as file:
        server = subprocess.Popen(words, env=os.environ | places, stdout=file, stderr=file)
    address = f"http://127.0.0.1:{port}{base.rstrip('/')}"
    try:
        answers(f"{address}/api/status?token={token}", server, said)
        yield address, token
    finally:
        _end(server)


def answers(address, server, said):
    """Wait until the process `server`, which writes what it has to say into `said`, answers."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(address, timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"no answer: {said.read_text()[-2000:]}")


def _end(server):
    """Stop the server and, should any outlive it, the processes it started."""
    listed = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    started = [int(pid) for pid in listed.read_text().split()] if listed.exists() else []
    server.terminate()
    try:
        server.wait(15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    until = time.monotonic() + 5
    while any(map(alive, started)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in filter(alive, started):
        os.kill(pid, signal.SIGKILL)


def alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
