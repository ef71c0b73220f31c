"""`open_study` in a real JupyterLab: the study's page is live inside the notebook."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from tests.ui.conftest import Visit

pytestmark = pytest.mark.ui
WAIT = 60.0  # seconds the lab may take to start on a busy machine
CELL = 'from workbench import open_study\n\nopen_study("flover")'
QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
RUN = """() => {
  const opened = window.jupyterapp.shell.currentWidget;
  const run = async () => {
    await opened.context.ready;
    await opened.sessionContext.ready;
    await opened.sessionContext.session.kernel.info;
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
  };
  const late = new Promise((_, fail) => setTimeout(() => fail('no kernel'), 40000));
  return Promise.race([run(), late]);
}"""


@pytest.fixture
def lab(tmp_path):
    """A lab of this test's own with one notebook in it; gives the notebook's address."""
    places = {
        name: str(tmp_path / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR",
                     "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")
    }  # fmt: skip
    work = tmp_path / "work"
    work.mkdir()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, work / "study.ipynb")
    quiet = tmp_path / "JUPYTERLAB_SETTINGS_DIR/@jupyterlab/apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    words += ["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    words += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={work}"]
    words += ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url="]
    with (tmp_path / "said.txt").open("w") as said:
        server = subprocess.Popen(words, env=os.environ | places, stdout=said, stderr=said)
    address = f"http://127.0.0.1:{port}"
    try:
        _answers(f"{address}/api/status?token={token}", server, tmp_path / "said.txt")
        yield address, f"/lab/tree/study.ipynb?reset&token={token}"
    finally:
        _end(server)


def _answers(address, server, said):
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(address, timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the lab did not answer: {said.read_text()[-2000:]}")


def _end(server):
    """Stop the server and, should any outlive it, the kernels it started."""
    listed = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    started = [int(pid) for pid in listed.read_text().split()] if listed.exists() else []
    server.terminate()
    try:
        server.wait(15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    until = time.monotonic() + 5
    while any(map(_alive, started)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in filter(_alive, started):
        os.kill(pid, signal.SIGKILL)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class Inside(Visit):
    """A visit to a notebook whose pictures are those of the frame in its cell."""

    @property
    def frame(self):
        return self.page.frame_locator('iframe[title="flover"]')

    def picture(self):
        drawn = "all => all.map(c => c.width && c.height ? c.toDataURL() : '').join()"
        return self.frame.locator("canvas").evaluate_all(drawn)


def test_a_study_lives_in_a_notebook_s_cell(browser, lab, tmp_path):
    address, notebook = lab
    seen = Inside(browser, address, 1600, 1100)
    try:
        page = seen.open(notebook)
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        page.evaluate(RUN)
        page.get_by_text(re.compile(r"^\[1\]:$")).first.wait_for()
        seen.frame.get_by_role("heading", name="Flover").wait_for()
        seen.frame.locator("canvas").first.wait_for()
        seen.frame.get_by_text("showing all 24 requests").first.wait_for()
        first = seen.settled()
        count = seen.frame.get_by_role("slider").first
        count.focus()
        count.press("Home")
        seen.frame.get_by_text("showing all 1 requests").first.wait_for()
        assert seen.settled() != first
        page.screenshot(path=tmp_path / "lab.png")
        assert seen.outside == [], "\n".join(seen.outside)
        assert seen.faults == []
    finally:
        seen.context.close()
