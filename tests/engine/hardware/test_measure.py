"""Measuring this machine: what is found is plausible, kept, and found again."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.hardware import measure as measuring
from engine.hardware import probes
from engine.hardware.device import Spread
from engine.hardware.measure import caches, known, known_roofs, measure, working_sets
from engine.hardware.roofs import roofs_of


@pytest.fixture(scope="module")
def found():
    """A quick measurement: small arrays, two repeats."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "SMALLEST", 2**24)
        patch.setattr(measuring, "caches", lambda: {"L3": 2.0**20})
        return measuring.probe(repeats=2).model_copy(update={"caution": "", "disturbed": 0.0})


def test_a_measured_device_says_when_and_how_far_figures_scatter(found):
    assert found.grade == "measured" and found.measured
    for spread in found.spread.values():
        assert 0 < spread.low <= spread.median <= spread.high and spread.count == 2


def test_measured_rates_are_those_of_a_computer(found):
    assert 1e8 < found.bandwidth < 1e13
    assert 1e8 < found.peak("float32") < 1e15
    assert 1e-8 < found.launch < 1e-2
    assert all(0 < share <= 1.0 for share in found.efficiency.values())


def test_a_measurement_is_kept_and_read_back_equal(found, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "probe", lambda say: found)
    first = measure(folder=tmp_path / "deep")
    monkeypatch.setattr(measuring, "probe", lambda say: pytest.fail("measured again"))
    assert measure(folder=tmp_path / "deep") == first == found


def test_known_roofs_are_those_of_the_kept_file_and_measure_nothing(found, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "probe", lambda say: found)
    assert known_roofs(folder=tmp_path) == []
    measure(folder=tmp_path)
    monkeypatch.setattr(measuring, "probe", lambda say: pytest.fail("measured in a run"))
    assert known_roofs(folder=tmp_path) == roofs_of(found) != []
    assert known_roofs(1, tmp_path) == roofs_of(found, 1)


@pytest.mark.parametrize("change", ["refresh", "damaged", "other machine", "of an older version"])
def test_it_measures_again_when_told_or_when_the_file_is_no_use(
    found, tmp_path, monkeypatch, change
):
    monkeypatch.setattr(measuring, "probe", lambda say: found)
    measure(folder=tmp_path)
    path = tmp_path / measuring.FILE
    if change == "damaged":
        path.write_text("{")
    if change == "other machine":
        path.write_text(json.dumps(json.loads(path.read_text()) | {"name": "another"}))
    if change == "of an older version":
        old = json.loads(path.read_text())
        for name in ("cache_bandwidth", "exponentials", "threads"):
            del old[name]
        del old["spread"]["exponential"]
        path.write_text(json.dumps(old))
    again = found.model_copy(update={"measured": "later"})
    monkeypatch.setattr(measuring, "probe", lambda say: again)
    assert measure(change == "refresh", folder=tmp_path).measured == "later"


@pytest.mark.parametrize(("quiet", "times"), [(True, 1), (False, 0)])
def test_what_a_busy_machine_lowered_is_measured_again_once_it_is_quiet(
    found, tmp_path, monkeypatch, quiet, times
):
    asked = []
    lowered = {"caution": measuring.BUSY.format(0.15), "disturbed": 0.15}
    disturbed = found.model_copy(update=lowered)
    monkeypatch.setattr(measuring, "probe", lambda say: asked.append(1) or disturbed)
    measure(folder=tmp_path)
    assert known(tmp_path) == disturbed
    monkeypatch.setattr(measuring, "_quiet", lambda: quiet)
    monkeypatch.setattr(measuring, "probe", lambda say: asked.append(1) or found)
    assert measure(folder=tmp_path).caution == ("" if quiet else disturbed.caution)
    assert len(asked) == 1 + times


def test_what_was_measured_beside_much_other_work_is_not_kept(found, tmp_path, monkeypatch):
    lowered = {"caution": measuring.BUSY.format(0.5), "disturbed": 0.5}
    disturbed = found.model_copy(update=lowered)
    monkeypatch.setattr(measuring, "_quiet", lambda: False)
    monkeypatch.setattr(measuring, "probe", lambda say: disturbed)
    assert "50% of the processor; not kept" in measure(folder=tmp_path).caution
    assert known(tmp_path) is None and known_roofs(folder=tmp_path) == []
    with monkeypatch.context() as patch:  # a run right after does not measure anew
        patch.setattr(measuring, "probe", lambda say: pytest.fail("measured again"))
        assert measure(folder=tmp_path).disturbed == 0.5
    for moment in (2**33, 0):  # to come, where a clock was set back, and long ago
        os.utime(tmp_path / measuring.PASSING, (moment, moment))
        assert measuring._passing(tmp_path) is None
    monkeypatch.setattr(measuring, "probe", lambda say: found)
    assert measure(folder=tmp_path) == known(tmp_path) == found
    # and one that is kept stands where it is measured again beside other work
    monkeypatch.setattr(measuring, "probe", lambda say: disturbed)
    again = measure(True, folder=tmp_path)
    assert roofs_of(again) == roofs_of(found) and "disturbed (50%" in again.caution
    assert known(tmp_path) == found


def test_what_is_told_to_pause_stands_around_measuring_alone(found, tmp_path, monkeypatch):
    told = []

    @contextmanager
    def meanwhile():
        told.append("still")
        yield
        told.append("on")

    monkeypatch.setattr(measuring, "probe", lambda say: told.append("measured") or found)
    measure(folder=tmp_path, meanwhile=meanwhile())
    measure(folder=tmp_path, meanwhile=meanwhile())
    assert told == ["still", "measured", "on"]


def test_processor_time_taken_by_others_is_noticed(monkeypatch):
    times = iter([0.0, 2.0])
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: next(times))
    own = iter([1.0, 2.0])
    monkeypatch.setattr(measuring.time, "process_time", lambda: next(own))
    assert measuring._watched(lambda: [3.0], 1) == ([3.0], 0.5)


def test_what_cannot_be_kept_is_said_and_used_all_the_same(found, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(measuring, "probe", lambda say: found)
    (tmp_path / "file").write_text("")
    assert measure(folder=tmp_path / "file") == found
    (line,) = caplog.messages
    assert "cannot keep the measurement" in line and "\n" not in line


def test_a_pipe_in_place_of_a_measurement_holds_nobody_up(found, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(measuring, "probe", lambda say: found)
    os.mkfifo(tmp_path / measuring.FILE)
    assert known(tmp_path) is None


def test_a_user_without_a_home_has_nothing_kept(found, monkeypatch, caplog):
    def nowhere():
        raise RuntimeError("no home")

    monkeypatch.setattr(measuring, "probe", lambda say: found)
    monkeypatch.setattr(Path, "home", nowhere)
    assert known() is None and measure() == found
    assert len(caplog.messages) == 1


def test_cache_sizes_are_read_where_the_system_tells_them(tmp_path):
    for index, (kind, level, size) in enumerate(
        [("Data", "1", "48K"), ("Instruction", "1", "32K"), ("Unified", "3", "32768K")]
    ):
        entry = tmp_path / f"index{index}"
        entry.mkdir()
        for name, text in (("type", kind), ("level", level), ("size", size)):
            (entry / name).write_text(text + "\n")
    assert caches(tmp_path) == {"L1": 48 * 1024, "L3": 32768 * 1024}
    assert caches(tmp_path / "none") == {}


@pytest.mark.parametrize(("limit", "times"), [(0.0, probes.FEWEST), (1e9, 7)])
def test_what_takes_long_is_repeated_less(limit, times):
    assert len(probes.timed(lambda: None, 7, limit=limit)) == times


def test_a_probe_reads_every_byte_and_copies_every_byte():
    import numpy as np

    x_PN = np.arange(2 * 1000, dtype=np.float32).reshape(2, 1000)
    y_PN = np.zeros_like(x_PN)
    probes._copy(x_PN, y_PN)
    x_PSN = np.arange(2 * 8 * 100, dtype=np.float32).reshape(2, 8, 100)
    assert probes._read(x_PSN) == x_PSN.sum()
    assert np.array_equal(x_PN, y_PN)


def test_a_level_is_read_with_half_of_it_and_told_apart_from_the_one_before():
    sizes = {"L1": 2.0**15, "L2": 2.0**20, "L3": 2.0**25}
    assert working_sets(sizes, 2) == {"L1": 2**14, "L2": 2**19, "L3": 2**23}
    assert "L3" not in working_sets(sizes, 16), "each thread's part would fit its L2"
    assert working_sets({}, 2) == {}


def test_reading_again_reads_all_of_the_part():
    import numpy as np

    x_PN = probes._aligned(2, 1024)
    assert x_PN.ctypes.data % 64 == 0 and x_PN.flags.c_contiguous
    x_PN[:] = 0
    bits = x_PN.view(np.int32)
    bits[0, 16::16], bits[1, ::16] = 1 << np.arange(63) % 31, 7
    y_P = np.zeros(2, np.int32)
    probes._read_again(x_PN, 3, y_P)
    # One lane of eight registers is looked at, after their bits have been joined.
    assert y_P.tolist() == [2**31 - 1, 7]


def test_importing_the_hardware_room_brings_neither_torch_nor_numba():
    code = "import engine.hardware, engine.hardware.measure, sys; " + (
        "assert not {'torch', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_spread_is_a_value():
    assert Spread(low=1, median=2, high=3, count=4) == Spread(low=1, median=2, high=3, count=4)
