"""A JupyterHub of a test's own: anybody may log in, every person gets a server of their own."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.ui.lab import answers

PROXY = "configurable-http-proxy"
MISSING = find_spec("jupyterhub") is None or shutil.which(PROXY) is None
WAIT = 300  # seconds for a person's server
CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{public}/base/"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.SimpleLocalProcessSpawner.home_dir_template = "{homes}/{{username}}"
c.Spawner.cmd = ["{server}"]
c.Spawner.args = ["--allow-root"]
c.Spawner.notebook_dir = "{homes}/{{username}}"
c.Spawner.default_url = "/lab"
c.Spawner.http_timeout = {wait}
c.Spawner.start_timeout = {wait}
"""


@contextmanager
def hub(folder: Path, people: tuple[str, ...]) -> Iterator[str]:
    """The hub's address below a base of its own, no / at its end; homes are in `folder`/homes."""
    for name in people:
        (folder / "homes" / name).mkdir(parents=True)
    programs = Path(sys.executable).parent
    public, inner, api = _free(3)
    text = CONFIG.format(
        public=public, hub=inner, api=api, wait=WAIT,
        homes=folder / "homes", server=programs / "jupyterhub-singleuser",
    )  # fmt: skip
    (folder / "jupyterhub_config.py").write_text(text)
    said = folder / "said.txt"
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with said.open("w") as file:
        process = subprocess.Popen(
            [programs / "jupyterhub", "-f", "jupyterhub_config.py"],
            cwd=folder, stdout=file, stderr=file, env=os.environ | {"PATH": path},
        )  # fmt: skip
    address = f"http://127.0.0.1:{public}/base"
    try:
        answers(f"{address}/hub/login", process, said)
        yield address
    finally:
        process.terminate()  # the hub ends its proxy and everybody's server
        try:
            process.wait(300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
