"""Tables of a machine's own device: the whole path on a processor, read back by who fits."""

import pytest

pytest.importorskip("triton", reason="triton is not installed here")
import torch

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.hardware.cost.constants import of_device
from engine.kernels.experiments.device_tables import experts, products, timing
from workbench.cli.main import main
from workbench.cost_model import measuring
from workbench.cost_model.check import report
from workbench.cost_model.measuring import measure
from workbench.cost_model.rows import LeftOut, Measured
from workbench.cost_model.tables import table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("measured") / "mine", "cpu", lambda what: None)


@pytest.fixture(scope="module")
def written(made):
    return made.files


def test_a_file_for_each_table_and_of_attention_for_each_kernel(written):
    assert [path.stem for path in written] == [
        "products",
        "narrow_products_scaled_by_rows",
        "narrow_products_scaled_by_tensors",
        "attention_tiles",
        "attention_lean",
        "experts",
    ]
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
        "narrow_products_scaled_by_rows": ["matmul"],
        "narrow_products_scaled_by_tensors": ["matmul"],
        "attention_tiles": ["chunk", "prefill"],
        "attention_lean": ["decode"],
        "experts": ["experts"],
    }


def test_every_row_is_there_or_told(made):
    lines = sum(len(path.read_text().splitlines()) - 2 for path in made.files)
    assert made.rows == lines > 0 and not made.left_out


def test_a_row_that_memory_or_torch_refuses_is_told_with_its_shape(tmp_path, monkeypatch, capsys):
    def full():
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 3 GiB")

    def table(device):
        yield timing.timed({"m": 1}, "linear", [lambda: None], device)
        yield timing.timed({"m": 2}, "linear", [full], device)
        yield timing.timed({"m": 3}, "linear", [full], device)

    folder = "engine.kernels.experiments.device_tables.TABLES"
    monkeypatch.setattr(folder, {"some": table})
    made = measure(tmp_path, "cpu", lambda what: None)
    assert made.rows == 1
    (left,) = made.left_out
    assert str(left) == "left out: 2 rows of linear, CUDA out of memory.: m=2; m=3"
    monkeypatch.setattr(measuring, "measure", lambda *_: made)
    assert main(["cost", "measure", "--out", str(tmp_path / "x"), "--json"]) == 0
    out, said = capsys.readouterr()
    assert str(left) in said and "1 row measured, 2 left out" in said
    assert '"why": "CUDA out of memory."' in out


def test_what_is_no_refusal_ends_the_measurement():
    with pytest.raises(TypeError):
        timing.timed({}, "linear", [lambda: len(3)], "cpu")


def test_short_calls_are_repeated_in_a_graph_and_long_ones_not():
    assert timing.rounds_of(1e-9) == timing.ROUNDS
    assert timing.rounds_of(timing.HELD / 4.5) == 4
    assert timing.rounds_of(1.0) == 1


def test_narrowed_rows_multiply_as_wide_ones():
    draw = torch.Generator().manual_seed(1)
    x, weight = (torch.randn(m, 4992, generator=draw).bfloat16() for m in (3, 16))
    narrow, scale = products.narrowed(x)
    told = x.float() / scale
    right = told.to(products.NARROW).float()
    # Triton's interpreter loses the carry of what rounds up to a power of two.
    carried = (told.abs() < right.abs()) & (right.abs().frexp().mantissa == 0.5)
    off = (narrow.float() - right).abs()[~carried]
    assert (off <= 2**-3 * right.abs()[~carried] + 2**-8).all(), "a step at most"
    found = products.by_rows(x, *products.narrowed(weight)).float()
    truth = x.float() @ weight.float().T
    assert (found - truth).abs().max() < 0.1 * truth.abs().max()


def test_grouped_experts_give_what_each_alone_gives():
    draw = torch.Generator().manual_seed(2)
    sizes = ((6, 32), (4, 32, 32), (4, 32, 16))
    x, up, down = (torch.randn(*size, generator=draw).bfloat16() for size in sizes)
    asked = torch.tensor([3, 0, 1, 0, 3, 2, 2, 3, 0, 1, 3, 1])
    part = torch.rand(6, 2, generator=draw).bfloat16()
    found = experts.experts(x, asked, part, experts.Layer(up, down, None)).float()
    for token in range(6):
        truth = 0.0
        for slot in range(2):
            e = int(asked[2 * token + slot])
            gate, value = (x[token].float() @ up[e].float().T).chunk(2)
            inner = (torch.nn.functional.silu(gate) * value) @ down[e].float().T
            truth = truth + part[token, slot].float() * inner
        assert (found[token] - truth).abs().max() < 0.05 * truth.abs().max()
    narrow = experts.in_8_bits(experts.Layer(up, down, None))
    back = narrow.down_EHI.float() * narrow.scales[1][..., None]
    assert (back - down.float()).abs().median() < 0.05


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_makes_nothing(tmp_path, capsys):
    assert main(["cost", "measure", "--out", str(tmp_path / "mine")]) == 2
    assert "no GPU here that torch can use" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()
    assert main(["cost", "measure", "t.csv", "--out", str(tmp_path)]) == 2
    assert main(["cost", "fit", "--device", "h200-sxm", "--out", str(tmp_path / "x.toml")]) == 2
    assert "give one measured table" in capsys.readouterr().err


def test_shipped_tables_of_an_h200_are_read_and_its_products_fitted():
    paths = sorted(dataset("measured/h200-sxm").glob("*.csv"))
    rows = {path.stem: table(path) for path in paths}
    every = [row for found in rows.values() for row in found]
    assert len(every) == 994 and all(isinstance(row, Measured) for row in every)
    assert {row.device for row in every} == {"h200-sxm"}
    assert not any(row.laid for row in every if row.operator in ("prefill", "chunk"))
    (line,) = report(rows["products"], of_device)
    assert line["median_error"] <= 0.06, "what is asked of a device's own fit"


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot"):
        measure(tmp_path / "file" / "mine", "cpu", lambda what: None)
