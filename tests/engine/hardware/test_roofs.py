"""Roofs as rows for a header: levels, dtypes, grades; fewer threads have lower ones."""

import pytest

from engine.hardware import device, devices, roofs_of
from engine.hardware.device import Device, Spread

FIELDS = {"device", "name", "kind", "value", "grade", "level", "dtype"}


def spread(value):
    return Spread(low=value / 2, median=value / 1.5, high=value, count=3)


MEASURED = Device(
    slug="this-machine",
    name="a machine, 4 cores",
    kind="cpu",
    grade="measured",
    peaks={"float32": 400.0, "bfloat16": 800.0},
    bandwidth=10.0,
    capacity=1e9,
    cache_bandwidth={"L2": 40.0, "L1": 100.0},
    launch=0.5,
    threads=4,
    spread={
        "read": spread(10.0),
        "read_one_thread": spread(6.0),
        "read_L1": spread(100.0),
        "read_L1_one_thread": spread(25.0),
        "read_L2": spread(40.0),
        "read_L2_one_thread": spread(10.0),
        "multiply_add": spread(400.0),
        "multiply_add_one_thread": spread(100.0),
        "matmul_float32": spread(300.0),
        "matmul_bfloat16": spread(800.0),
        "exponential": spread(7.0),
    },
)


def values(roofs):
    return {roof["name"]: roof["value"] for roof in roofs}


@pytest.mark.parametrize("name", devices())
def test_every_data_sheet_gives_a_memory_roof_and_one_for_each_dtype(name):
    sheet = device(name)
    roofs = roofs_of(sheet)
    assert all(set(roof) == FIELDS and roof["device"] == name for roof in roofs)
    assert {roof["grade"] for roof in roofs} == {"sheet"}
    memory = [roof for roof in roofs if roof["level"] in ("HBM", "DRAM")]
    assert [roof["value"] for roof in memory] == [sheet.bandwidth]
    peaks = {roof["dtype"]: roof["value"] for roof in roofs if roof["kind"] == "compute"}
    assert peaks == dict(sheet.peaks)


def test_a_level_nearer_the_arithmetic_is_faster_than_the_one_behind():
    h100 = values(roofs_of(device("h100-sxm")))
    assert h100["shared"] > h100["L2"] > h100["HBM"] == 3.35e12
    assert h100["shared"] == pytest.approx(30.9e12, rel=0.01)
    assert values(roofs_of(device("a100-sxm-80gb")))["shared"] == pytest.approx(19.5e12, rel=0.01)
    assert "DRAM" in values(roofs_of(device("l40s"))), "its memory is GDDR6"


def test_a_measured_machine_has_a_roof_for_each_level_and_kernel_limit():
    roofs = values(roofs_of(MEASURED))
    assert roofs == {
        "DRAM read": 10.0,
        "L1 read": 100.0,
        "L2 read": 40.0,
        "float32 multiply-add": 400.0,
        "float32 matmul": 300.0,
        "bfloat16 matmul": 800.0,
        "exponentials": 7.0,
        "launches": 2.0,
    }


@pytest.mark.parametrize(
    ("threads", "dram", "grade"), [(1, 6.0, "measured"), (2, 10.0, "measured")]
)
def test_fewer_threads_reach_no_more_than_they_do_alone(threads, dram, grade):
    roofs = {roof["name"]: roof for roof in roofs_of(MEASURED, threads)}
    assert roofs["DRAM read"]["value"] == dram and roofs["DRAM read"]["grade"] == grade
    assert roofs["float32 multiply-add"]["value"] == 100.0 * threads
    assert roofs["float32 multiply-add"]["grade"] == ("measured" if threads == 1 else "modelled")
    assert roofs["bfloat16 matmul"]["value"] == 800.0, "known for all threads together only"


def test_more_threads_than_there_are_reach_what_all_reach():
    assert roofs_of(MEASURED, 9) == roofs_of(MEASURED) == roofs_of(MEASURED, 4)
