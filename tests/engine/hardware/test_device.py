"""Data sheets: complete, sourced, plausible; and clear about what is wrong with a bad one."""

import tomllib

import pytest

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.hardware.device import Device, device, devices
from engine.hardware.link import Link, link, links
from engine.hardware.sheet import read

PLAIN = {"slug", "name", "vendor", "kind", "grade", "caution", "disturbed", "sources"}


@pytest.mark.parametrize("folder", ["hardware", "hardware/links"])
def test_every_fact_of_every_sheet_names_its_source(folder):
    for path in dataset(folder).glob("*.toml"):
        facts = tomllib.loads(path.read_text())
        told = {name for name, source in facts["sources"].items() if source.strip()}
        assert set(facts) - PLAIN == told, path.name


def test_every_sheet_reads_and_names_links_that_exist():
    assert len(devices()) >= 20
    for name in devices():
        sheet = device(name)
        assert sheet.slug == name
        for used in (sheet.host_link, sheet.scale_up):
            assert not used or used in links()


def test_figures_are_those_of_the_data_sheets():
    h100, h200, a100 = device("h100-sxm"), device("h200-sxm"), device("a100-sxm-80gb")
    assert h100.peak("bfloat16") == 989e12 and h100.bandwidth == 3.35e12
    assert h200.bandwidth == 4.8e12 and h200.capacity == 141e9
    assert a100.peak("float16") == 312e12 and a100.bandwidth == 2.039e12
    assert link("nvlink4").bandwidth == 450e9, "one way; vendors print both"


def test_peaks_are_dense_ones():
    assert device("l4").peak("float8") == 242e12
    assert device("mi300x").peak("bfloat16") == 1307.4e12
    for name in devices():
        peaks = device(name).peaks
        if {"float8", "bfloat16"} <= set(peaks):
            # A sparse float8 figure beside a dense bfloat16 one would be four times it.
            assert peaks["float8"] <= 2.1 * peaks["bfloat16"], name


def test_reached_rates_stay_under_the_roof_where_no_fraction_is_known_they_are_the_roof():
    h100 = device("h100-sxm")
    assert h100.reached("bfloat16") == pytest.approx(0.803 * 989e12)
    assert h100.reached("bandwidth") == h100.bandwidth
    assert h100.at_best().reached("bfloat16") == h100.peak("bfloat16")


def test_an_unknown_device_or_link_is_answered_with_known_ones():
    with pytest.raises(BadInput, match="device 'h1000'.*did you mean h100-sxm"):
        device("h1000")
    with pytest.raises(BadInput, match="link '../../x'.*among .*ethernet-100"):
        link("../../x")


def test_a_missing_peak_names_device_dtype_and_what_there_is():
    with pytest.raises(BadInput, match=r"T4: no bfloat16 peak known; one of: float16"):
        device("t4").peak("bfloat16")


SHEET = (
    'name = "X"\nkind = "gpu"\ngrade = "B"\ncapacity = 1e9\nbandwidth = 1e9\n[peaks]\nint8 = 1e9\n'
)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (SHEET.replace("bandwidth = 1e9\n", ""), "field 'bandwidth': field required"),
        (SHEET.replace("bandwidth = 1e9", "bandwidth = -1.0"), "field 'bandwidth'.*greater than"),
        (SHEET.replace("int8 = 1e9", "int8 = 0.0"), "field 'peaks.int8'.*greater than"),
        (SHEET.replace("int8 = 1e9", ""), "needs a peak"),
        (SHEET.replace("capacity = 1e9", "capacity = nan"), "field 'capacity'.*finite"),
        (SHEET.replace('grade = "B"', 'grade = "B"\nspeed = 3'), "field 'speed'.*not permitted"),
        (SHEET + "[efficiency]\nint8 = 3.0\n", "field 'efficiency.int8'.*less than"),
        ("name = ", "not a TOML file"),
    ],
)
def test_a_bad_sheet_gives_one_line_that_names_file_and_field(tmp_path, wrong, message):
    path = tmp_path / "mine.toml"
    path.write_text(SHEET)
    assert read(Device, path).peaks["int8"] == 1e9
    path.write_text(wrong)
    with pytest.raises(BadInput, match=message) as fault:
        read(Device, path)
    assert "mine.toml" in str(fault.value) and "\n" not in str(fault.value)


def test_a_sheet_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(BadInput, match="cannot read"):
        read(Link, tmp_path / "none.toml")


def test_the_facts_of_a_device_cannot_be_changed():
    with pytest.raises(TypeError):
        device("h100-sxm").peaks["bfloat16"] = 1.0
