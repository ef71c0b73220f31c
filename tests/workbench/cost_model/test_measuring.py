"""Tables of a machine's own device: the whole path on a processor, read back by who fits."""

import pytest

pytest.importorskip("triton", reason="triton is not installed here")
import torch

from engine.core.errors import BadInput
from workbench.cli.main import main
from workbench.cost_model.measuring import measure
from workbench.cost_model.rows import LeftOut, Measured
from workbench.cost_model.tables import table


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("measured") / "mine", "cpu", lambda what: None)


def test_a_file_for_each_table_and_of_attention_for_each_kernel(written):
    assert [path.stem for path in written] == ["products", "attention_tiles", "attention_lean"]
    for path in written:
        first, head, *rows = path.read_text().splitlines()
        assert first.startswith("# Measured by `workbench cost measure` on cpu with torch ")
        assert head.startswith("system,") and rows


def test_who_fits_reads_every_row(written, tmp_path):
    kinds = {}
    for path in written:
        assert all(isinstance(row, LeftOut) for row in table(path)), "cpu has no data sheet"
        copy = tmp_path / path.name
        copy.write_text(path.read_text().replace("\ncpu,", "\nh200_sxm,"))
        rows = table(copy)
        assert all(isinstance(row, Measured) and row.seconds > 0 for row in rows)
        assert {row.device for row in rows} == {"h200-sxm"}
        kinds[path.stem] = sorted({row.operator for row in rows})
    assert kinds == {
        "products": ["matmul"],
        "attention_tiles": ["chunk", "prefill"],
        "attention_lean": ["decode"],
    }


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_makes_nothing(tmp_path, capsys):
    assert main(["cost", "measure", "--out", str(tmp_path / "mine")]) == 2
    assert "no GPU here that torch can use" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()
    assert main(["cost", "measure", "t.csv", "--out", str(tmp_path)]) == 2
    assert main(["cost", "fit", "--device", "h200-sxm", "--out", str(tmp_path / "x.toml")]) == 2
    assert "give one measured table" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot"):
        measure(tmp_path / "file" / "mine", "cpu", lambda what: None)
