"""`workbench kernels` and the kernels' bench: what they list, their exit codes, their errors."""

import json
from dataclasses import replace

import pytest

from engine.hardware import device
from engine.kernels.norm import OPERATOR
from workbench import kernel_times
from workbench.benches import kernels
from workbench.benches._kernels import operators as section
from workbench.cli import kernels as cli_kernels
from workbench.cli.main import main


def test_it_lists_operators_and_variants(capsys):
    assert main(["kernels", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    ours = {row["variant"]: row for row in rows if row["operator"] == "norm"}
    assert ours["rows_cpu"]["runs_here"] and ours["rows_cpu"]["picked"]
    assert ours["rows"]["device"] == "cuda" and "bfloat16" in ours["rows"]["dtypes"]
    assert main(["kernels"]) == 0
    assert "rows_cpu" in capsys.readouterr().out


def test_a_variant_is_picked_by_name(capsys):
    assert main(["kernels", "norm", "--variant", "rows", "--check", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["variant"] == "rows" and all(p["holds"] for p in row["parity"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["kernels", "nrom"], "no such operator"),
        (["kernels", "norm", "--variant", "fastest"], "no such variant"),
        (["kernels", "--variant", "rows"], "needs the operator"),
    ],
)
def test_bad_names_are_one_line(words, says, capsys):
    assert main(words) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and says in lines[0]


def test_a_wrong_variant_is_exit_code_one(monkeypatch, capsys):
    right = OPERATOR.variants()["rows_cpu"]
    wrong = replace(right, call=lambda **given: right.call(**given) * 2)
    monkeypatch.setattr(cli_kernels, "_chosen", lambda name, variant: [(OPERATOR, wrong)])
    assert main(["kernels", "norm", "--check"]) == 1
    assert "NO" in capsys.readouterr().out


def test_times_stand_beside_the_limit(monkeypatch):
    monkeypatch.setattr(kernel_times, "SHORTEST", 0.0)
    variant = OPERATOR.variants()["rows_cpu"]
    rows = list(kernel_times.times(OPERATOR, variant, device("h100-sxm")))
    assert [row["size"] for row in rows] == [size.name for size in OPERATOR.sizes]
    for row in rows:
        assert row["seconds"] > 0
        assert row["fraction_of_limit"] == pytest.approx(row["limit_seconds"] / row["seconds"])


def test_every_section_gives_rows_with_the_keys_asked_for(monkeypatch):
    monkeypatch.setattr(kernel_times, "SHORTEST", 0.0)
    monkeypatch.setattr(section, "probe", lambda say, repeats: device("h100-sxm"))
    monkeypatch.setattr(kernels, "sections", lambda: {"operators": section})
    said: list[str] = []
    rows = kernels.run(full=False, say=said.append)
    assert said == ["kernels: operators"] and rows
    assert all(set(row) == {"section", *kernels.KEYS} for row in rows)
    head, *lines = kernels.table(rows)
    assert len(lines) == len(rows) and {len(line) for line in lines} == {len(head)}


def test_sections_are_found_by_file():
    assert all(callable(module.rows) for module in kernels.sections().values())
    assert "operators" in kernels.sections()


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (2.5, "2.5 s"), (1.2e-5, "12 µs"), (3e-9, "3 ns")]
)
def test_durations_read_in_units_that_fit(value, shown):
    assert kernels.duration(value) == shown
