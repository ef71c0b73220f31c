"""A device that is not described is refused by every command that asks a cost model."""

import pytest

from workbench.cli.main import main


@pytest.mark.parametrize(
    "words",
    [["predict", "--set", "load.rate=2", "--set", "cluster.device=nope"],
     ["design", "--set", "device=nope"],
     ["fleet", "--set", "engine.executor.device=nope"]],
)  # fmt: skip
def test_a_device_without_a_sheet_is_said_wherever_it_is_asked_for(words, capsys):
    assert main(words) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "workbench: " in line]
    assert "device 'nope': no data sheet" in said and "Traceback" not in said
