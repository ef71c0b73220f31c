"""`workbench cost fit`: constants of a made table come back, of one device, and are used."""

import json

import numpy as np
import pytest

from engine.hardware import device
from engine.hardware.cost import attention, curves
from engine.hardware.cost.constants import constants, of_device
from engine.hardware.cost.model import CostModel
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.modelled import Modelled
from engine.models.loading.find import find
from workbench.cli.main import main
from workbench.cost_model.simplex import lowest

GEMM = "system,dtype,m,n,k,us,kernel"


def gemm(folder, speed: dict[str, float]) -> str:
    """A table that the old constants would measure on each device, times a factor."""
    lines = [GEMM]
    for name, factor in speed.items():
        model = CostModel(device(name))
        for n in (1024, 2048, 4096, 6144, 8192, 12288, 16384, 20480):
            for m in (1, 64, 1024):
                seconds = factor * model.matmul(m, n, 4096).seconds
                lines.append(f"{name},bfloat16,{m},{n},4096,{1e6 * seconds:.3f},made")
    path = folder / "gemm.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """A simplex of few rounds: enough to follow a factor."""
    monkeypatch.setattr(
        "workbench.cost_model.fit.lowest",
        lambda value, start, rounds: lowest(value, start, 0.25, 30),
    )


def test_a_fit_is_written_and_taken_by_check_and_by_steps(tmp_path, capsys):
    table, out = gemm(tmp_path, {"a100-sxm-80gb": 3.0, "h100-sxm": 1.0}), str(tmp_path / "own.toml")
    words = ["cost", "fit", table, "--device", "a100-sxm-80gb", "--out", out, "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["intervals"]["matmul"]["rows"] == 24
    assert main(["check", "cost-model", table, "--constants", out, "--json"]) == 0
    rows = {row["device"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["a100-sxm-80gb"]["median_error"] < 0.15 < 1 < rows["h100-sxm"]["bias"]
    model, a100 = find("llama-2-7b").config, device("a100-sxm-80gb")
    shape_of = (np.ones(4, np.int32), np.full(4, 50, np.int32), 4)
    slow, fast = (
        cost_of(model, a100, "float16", choice) for choice in (Modelled(constants=out), Modelled())
    )
    assert slow.total(slow.shape(*shape_of))[0] > 2 * fast.total(fast.shape(*shape_of))[0]


def test_what_no_table_holds_keeps_the_interval_of_where_it_is_from(tmp_path):
    table, out = gemm(tmp_path, {"a100-sxm-40gb": 1.0}), tmp_path / "own.toml"
    words = ["--device", "a100-sxm-40gb", "--base", "a100-sxm-80gb", "--out", str(out)]
    assert main(["cost", "fit", table, *words]) == 0
    found, kin = constants(str(out)), constants("a100-sxm-80gb")
    assert found.intervals["matmul"].rows == 24 and found.lent == "a100-sxm-80gb"
    assert found.intervals["decode"] == kin.elsewhere["decode"] != kin.intervals["decode"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "a10000"], "no data sheet"),
        (["--device", "l40s"], "no row of the tables; they hold: a100-sxm-80gb"),
        (["--device", "a100-sxm-80gb", "--base", "a1"], "none of that name"),
        (["--device", "a100-sxm-80gb", "--kin", "a100-sxm-40gb,"], "--kin '': no data sheet"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_one_line(words, says, tmp_path, capsys):
    table = gemm(tmp_path, {"a100-sxm-80gb": 1.0})
    assert main(["cost", "fit", table, "--out", str(tmp_path / "x.toml"), *words]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert says in last


def test_a_device_without_constants_takes_its_kins_and_their_interval():
    own, kin = of_device("h100-sxm"), of_device("h100-pcie")
    assert own.matmul == kin.matmul
    assert kin.interval("matmul").high > own.interval("matmul").high
    assert of_device("mi300x") == constants("operators")


def test_latencies_go_with_the_clock_and_come_back():
    found = of_device("h100-sxm")
    assert found.at_clock(2 * found.clock).decode.launch == pytest.approx(found.decode.launch / 2)
    assert found.at_clock(1e9).at_clock(found.clock).prefill.tile == pytest.approx(
        found.prefill.tile
    )
    slow = device("h100-sxm").model_copy(update={"clock": found.clock / 2})
    begin = found.decode.launch + found.decode.tile
    assert attention.decode(slow, found, 1, 1, 8, 128, "bfloat16").roofs["launch"] == pytest.approx(
        2 * begin
    )


def test_a_cache_that_holds_what_is_read_again_is_faster_and_spills_at_once():
    found, l40s = of_device("l40s"), device("l40s")
    size = np.array([0.3, 0.6, 1.4, 2.8]) * l40s.caches["L2"] * found.decode.holds
    rate = size / curves.traffic(l40s, found, found.decode, size)
    assert rate[0] == pytest.approx(rate[1]) and rate[2] == pytest.approx(rate[3])
    assert rate[1] > 1.5 * rate[2]
