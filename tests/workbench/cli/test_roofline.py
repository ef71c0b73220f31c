"""`workbench roofline`: roofs, kernels by what they lose, files, and faults in one line."""

import json

import pytest

from engine.core.file import load
from engine.kernels.experiments import sweep
from tests.engine.kernels.experiments.test_sweep import MACHINE
from workbench.cli.main import main
from workbench.pages.suggested_views import suggested_views

QUICK = ["--set", "operator=norm", "--set", "operator.rows=4", "--set", "seconds=0"]


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(sweep, "measure", lambda *given, **more: MACHINE)


def test_it_prints_roofs_and_what_binds_each_kernel(capsys):
    assert main(["roofline", *QUICK]) == 0
    said = capsys.readouterr().out
    assert "DRAM read" in said and "memory-bound" in said and "(modelled)" not in said
    assert main(["roofline", *QUICK, "--set", "beside=h100-sxm"]) == 0
    assert "(modelled)" in capsys.readouterr().out


def test_a_kept_run_opens_in_the_roofline_view(tmp_path, capsys):
    path = tmp_path / "a.run"
    assert main(["roofline", *QUICK, "--json", "--save", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["marks"][0]["title"] == "norm rows_cpu" and told["roofs"]
    assert "roofline" in suggested_views(load(path))


def test_a_bad_knob_is_one_line_and_exit_code_two(capsys):
    assert main(["roofline", "--set", "operator=normal"]) == 2
    said = capsys.readouterr().err
    assert "operator" in said and said.count("\n") == 1
