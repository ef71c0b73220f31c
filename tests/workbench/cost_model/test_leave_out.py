"""Intervals of what constants never saw: of further rows, and of devices left out."""

import numpy as np
import pytest

from engine.hardware import device
from engine.hardware.cost import curves
from engine.hardware.cost.constants import of_device
from workbench.cost_model import between, leave_out
from workbench.cost_model.fit import within
from workbench.cost_model.leave_out import Errors

SHEETS = ("a100-sxm-80gb", "h100-sxm", "l40s")


def errors(seed, shift=0.0, names=("matmul", "decode")):
    """Errors that scatter by 0.1, of devices that are each off by a shift of that deviation."""
    draw = np.random.default_rng(seed)

    def scatter():
        return 0.1 * draw.normal(size=200)

    off = {(name, s): shift * draw.normal() for name in names for s in SHEETS}
    return Errors(
        {key: scatter() for key in off},
        {(n, s): scatter() + off[n, s] - np.mean([off[n, o] for o in SHEETS if o != s])
         for n, s in off},
        {(n, s, o): scatter() + off[n, o] - off[n, s] for n, s in off for o in SHEETS if o != s},
    )  # fmt: skip


@pytest.mark.parametrize("rows", [20, 39, 200])
def test_a_further_error_is_inside_nine_times_in_ten(rows):
    draw = np.random.default_rng(rows)
    inside = []
    for _ in range(2000):
        *seen, new = draw.normal(size=rows + 1)
        low, high = within(np.array(seen))
        inside.append(low <= new <= high)
    assert 0.88 <= np.mean(inside) <= 0.96


def test_devices_of_one_chip_show_no_shift_to_each_other(monkeypatch):
    monkeypatch.setattr(leave_out, "fit_one", lambda start, *_: start)
    monkeypatch.setattr(leave_out, "errors", lambda rows, _: np.zeros(len(rows)))
    rows = {sheet: [] for sheet in ("a100-sxm-80gb", "h100-sxm", "h200-sxm")}
    found = {(fitted, other) for _, fitted, other in leave_out._pairs(rows, "matmul", 1)}
    assert found == {("a100-sxm-80gb", "h100-sxm"), ("h100-sxm", "a100-sxm-80gb")}


def test_a_device_left_out_is_told_by_others_alone():
    seen = errors(1, shift=0.1)
    other = Errors(*(
        {key: 9 * each if "l40s" in key else each for key, each in part.items()} for part in seen
    ))  # fmt: skip
    assert other.between("matmul", "l40s") == seen.between("matmul", "l40s")
    assert other.between("matmul", "h100-sxm") != seen.between("matmul", "h100-sxm")
    assert Errors({}, {}, {}).between("matmul", "l40s") is None


def test_a_shift_is_found_again():
    names = [f"operator{number}" for number in range(200)]
    for truth in (0.02, 0.1, 0.4):
        found = between.shift(errors(3, truth, names).pairs, "another")
        assert found.scale == pytest.approx(truth, rel=0.15, abs=0.01)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
def test_devices_left_out_are_inside_nine_times_in_ten(shift):
    """Of many worlds: one device's rows are inside together or outside together."""
    inside = []
    for seed in range(40):
        seen = errors(seed, shift)
        inside += [np.mean(np.abs(wrong) <= seen.between(*key).high)
                   for key, wrong in seen.away.items()]  # fmt: skip
    assert 0.87 <= np.mean(inside) <= 0.97


def test_check_bits_take_their_part_of_a_memory_that_keeps_them_among_its_data():
    assert curves.memory_rate(device("l40s")) == device("l40s").bandwidth * 15 / 16
    assert curves.memory_rate(device("h100-sxm")) == device("h100-sxm").bandwidth


def test_an_8_bit_product_takes_the_tile_of_its_shape():
    """As vLLM dispatches: on Ada to 256 rows, where a product is middling wide."""
    m, n = np.array([16.0, 128.0, 512.0, 512.0]), np.array([8192.0, 8192.0, 8192.0, 4096.0])
    hopper, ada = (curves._narrow_tile(device(s), m, n)[0][0] for s in ("h100-sxm", "l40s"))
    assert hopper.tolist() == [64, 64, 128, 128] and ada.tolist() == [32, 64, 256, 128]


def test_a_device_falls_no_further_than_the_best_rate_of_its_sheet():
    found, sheet = of_device("h100-sxm"), device("h200-sxm")
    known = sheet.model_copy(update={"efficiency": {"bfloat16": 0.8}, "tdp": 350.0})
    unknown = known.model_copy(update={"efficiency": {}})
    long = [float(curves.matmul(d, found, 8192, 8192, 8192, "bfloat16").seconds[0])
            for d in (known, unknown)]  # fmt: skip
    assert long[0] < long[1]
