"""The wheel in an empty environment, away from the source tree: all of it is there and works."""

import json
import os
import subprocess
import sys
import urllib.request
import venv
from pathlib import Path

import pytest

from tests.ui.served import serving

ROOT = Path(__file__).resolve().parent.parent.parent
LONG = 1800  # seconds for what fetches packages
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh virtual environment with the wheel in it, and a folder to be in."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(folder), str(ROOT)]
    subprocess.run(words, check=True, timeout=LONG)
    (wheel,) = folder.glob("parallel_workbench-*.whl")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True, timeout=LONG)
    (folder / "elsewhere").mkdir()
    return folder


def run(environment, *words, codes=(0,)):
    """What a command of the environment prints, run outside the source tree.

    Its exit code must be one of `codes`.
    """
    own = environment / "env/bin"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JUPYTER"))}
    clean |= {"PATH": f"{own}:{clean['PATH']}", "HOME": str(environment / "elsewhere")}
    program = [str(own / words[0]), *words[1:]]
    place = environment / "elsewhere"
    done = subprocess.run(
        program, cwd=place, env=clean, capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode in codes, done.stderr[-2000:]
    return done.stdout + done.stderr


def test_code_and_data_come_from_the_wheel(environment):
    where = "import workbench, engine.core.paths as p; print(workbench.__file__, p.datasets())"
    code, data = run(environment, "python", "-c", where).split()
    assert str(environment) in code and str(environment) in data


def test_the_lab_extension_is_there_and_enabled(environment):
    said = run(environment, "jupyter", "labextension", "list")
    assert any(
        "parallel-workbench" in line and "enabled" in line and "OK" in line
        for line in said.splitlines()
    ), said
    assert "workbench.jupyter" in run(environment, "jupyter", "server", "extension", "list")


def test_a_study_runs_and_its_claims_are_checked(environment):
    small = ("--set", "workload.count=3", "--json")
    found = run(environment, "workbench", "run", "flover", *small)
    assert '"finished": 3' in found
    words = ("workbench", "check", "flover", "--fast", "--json")
    said = run(environment, *words, codes=(0, 1))  # 1: one does not hold
    judged, _ = json.JSONDecoder().raw_decode(said)
    assert {"exact", "measured", "modelled"} == {claim["grade"] for claim in judged}
    # How quick it is depends on what else the machine does.
    assert all(claim["holds"] for claim in judged if claim["grade"] != "measured"), judged


def test_the_app_serves_a_study_s_page(environment, tmp_path):
    python, place = environment / "env/bin/python", environment / "elsewhere"
    with serving(tmp_path, python=python, place=place) as at:
        for page in ("/study?slug=flover", "/catalogue", "/static/js/bokeh.min.js"):
            with urllib.request.urlopen(f"{at}{page}", timeout=300) as answer:
                assert answer.status == 200
