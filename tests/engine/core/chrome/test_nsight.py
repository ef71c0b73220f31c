"""Nsight Systems' SQLite export read in: the same lanes, launches and breakdown as of a Chrome
trace of the same work, and what is no export."""

import sqlite3
from contextlib import closing

import pytest

from engine.core.chrome.device_trace import DeviceTrace
from engine.core.chrome.read import read_chrome
from engine.core.errors import BadInput
from engine.core.limits import changed
from tests.engine.core.chrome.traced import waits, written
from workbench.traces.read import open_log

TABLES = """
CREATE TABLE StringIds (id INTEGER, value TEXT);
CREATE TABLE TARGET_INFO_GPU (name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, shortName, correlationId);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, copyKind, correlationId);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, nameId, correlationId);
CREATE TABLE NVTX_EVENTS (start, end, globalTid, text, textId, eventType);
"""


def exported(path, entries):
    """The database that Nsight Systems would have written of these entries of the format."""
    numbers = {}
    with closing(sqlite3.connect(path)) as base:
        base.executescript(TABLES)
        for e in entries:
            name = numbers.setdefault(e["name"], len(numbers) + 1)
            ends = (1000 * e["ts"], 1000 * (e["ts"] + e["dur"]))
            by = e["args"]["correlation"]
            if e["cat"] == "cuda_runtime":
                row = (*ends, (e["pid"] << 24) + e["tid"], name, by)
                base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)", row)
                continue
            table = "MEMCPY" if e["cat"] == "gpu_memcpy" else "KERNEL"
            row = (*ends, e["pid"], e["tid"], 1 if table == "MEMCPY" else name, by)
            base.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES (?,?,?,?,?,?)", row)
        base.executemany("INSERT INTO StringIds VALUES (?,?)", [(n, v) for v, n in numbers.items()])
        base.execute("INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H100 80GB HBM3')")
        base.execute("INSERT INTO NVTX_EVENTS VALUES (0, 90000, ?, 'step', NULL, 59)",
                     ((9 << 24) + 9,))  # fmt: skip
        base.commit()
    return path


def test_an_export_says_what_a_chrome_trace_of_the_same_work_says(tmp_path):
    chrome = read_chrome(written(tmp_path, waits()))
    nsight = read_chrome(exported(tmp_path / "r.sqlite", waits()))
    assert nsight.devices == ["NVIDIA H100 80GB HBM3"]
    assert {"GPU 0, stream 7", "GPU 0, stream 8"} <= set(nsight.spans.lanes)
    assert len(nsight.spans) == len(chrome.spans) + 1 and "step" in nsight.spans.names
    assert (nsight.launched_by >= 0).sum() == (chrome.launched_by >= 0).sum() > 0
    one, other = (DeviceTrace.of_log(open_log(tmp_path / name)) for name in ("t.json", "r.sqlite"))
    (first,), (second,) = one.breakdowns(), other.breakdowns()
    for name in ("window", "compute", "communication", "memory", "idle"):
        assert getattr(second, name) == pytest.approx(getattr(first, name))
    told = [
        [(k.name, k.count, round(k.seconds, 9)) for k in each.kernels()] for each in (one, other)
    ]
    assert sorted(told[0]) == sorted(told[1])


def test_what_is_no_export_or_damaged_is_said_in_a_line(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as base:
        base.execute("CREATE TABLE notes (text)")
        base.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM notes")
        base.commit()
    with pytest.raises(BadInput, match="without CUDA work of Nsight Systems"):
        open_log(tmp_path / "other.sqlite")
    whole = exported(tmp_path / "r.sqlite", waits()).read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match="cut.sqlite: cannot be read as SQLite"):
        open_log(tmp_path / "cut.sqlite")


def test_texts_are_weighed_before_they_are_held(tmp_path):
    path = exported(tmp_path / "r.sqlite", waits())
    with changed(text_bytes=300), pytest.raises(BadInput, match="over the limit text_bytes=300"):
        open_log(path)


def test_nothing_is_computed_by_a_schema(tmp_path):
    """Generated columns make texts of nothing; virtual tables have columns that are hidden."""
    for number, made in enumerate((
        "CREATE TABLE StringIds (id INTEGER, value TEXT AS (hex(zeroblob(300000000))));"
        "INSERT INTO StringIds (id) VALUES (1);",
        "CREATE VIRTUAL TABLE StringIds USING fts5(id, value);",
    )):  # fmt: skip
        path = exported(tmp_path / f"{number}.sqlite", waits())
        with closing(sqlite3.connect(path)) as base:
            base.executescript("DROP TABLE StringIds;" + made)
            base.commit()
        with pytest.raises(BadInput, match="StringIds has computed columns"):
            open_log(path)


def test_two_processes_of_one_export_are_told_apart(tmp_path):
    """Both call theirs device 0, stream 7 and correlation 1; the second's device is GPU 1."""
    ranks = {100: (0, "python3.11"), 200: (1, "python3.11")}
    with closing(sqlite3.connect(tmp_path / "two.sqlite")) as base:
        base.executescript(
            TABLES.replace("KERNEL (", "KERNEL (globalPid, ")
            + "CREATE TABLE PROCESSES (globalPid, pid, name);"
            "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);"
        )
        for pid, (gpu, program) in ranks.items():
            process = (1 << 48) + (pid << 24)  # the host's number stands before the process's
            at = 1000 * gpu
            base.execute("INSERT INTO PROCESSES VALUES (?,?,?)", (process, pid, f"/bin/{program}"))
            base.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?,0,?)", (gpu, pid))
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,1,1)",
                         (at, at + 100, process + pid))  # fmt: skip
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,0,7,2,1)",
                         (process, at + 200, at + 2200))  # fmt: skip
        base.executemany("INSERT INTO StringIds VALUES (?,?)", [(1, "cudaLaunch"), (2, "gemm")])
        base.commit()
    read = read_chrome(tmp_path / "two.sqlite")
    lanes = [read.spans.lanes[lane] for lane in read.spans.lane]
    devices = [f"GPU {g}, stream 7, process {p} (python3.11)" for p, (g, _) in ranks.items()]
    assert {lane for lane in lanes if "stream" in lane} == set(devices)
    assert {lane for lane in lanes if "stream" not in lane} == {"thread 100", "thread 200"}
    launched = {
        lanes[row]: lanes[by] for row, by in enumerate(read.launched_by.tolist()) if by >= 0
    }
    assert launched == dict(zip(devices, ("thread 100", "thread 200"), strict=True))
    trace = DeviceTrace.of_log(open_log(tmp_path / "two.sqlite"))
    assert [b.window for b in trace.breakdowns()] == pytest.approx([2e-6, 2e-6])


def test_two_processes_on_one_device_keep_their_streams(tmp_path):
    """Without a table of devices, a device's number is taken as it stands."""
    with closing(sqlite3.connect(tmp_path / "two.sqlite")) as base:
        base.executescript(TABLES.replace("KERNEL (", "KERNEL (globalPid, "))
        for pid in (100, 200):
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,0,7,2,1)",
                         (pid << 24, 1000 * pid, 1000 * pid + 500))  # fmt: skip
        base.commit()
    read = read_chrome(tmp_path / "two.sqlite")
    assert set(read.spans.lanes) == {f"GPU 0, stream 7, process {pid}" for pid in (100, 200)}


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_changes_that_lie_beside_an_export_are_said_instead_of_left_out(tmp_path, end):
    path = exported(tmp_path / "r.sqlite", waits())
    (tmp_path / f"r.sqlite{end}").write_bytes(b"")
    assert len(open_log(path))
    (tmp_path / f"r.sqlite{end}").write_bytes(b"changes")
    with pytest.raises(BadInput, match=f"lie in r.sqlite{end}"):
        open_log(path)


def test_a_damaged_schema_whose_fault_is_no_text_is_one_line(tmp_path):
    path = exported(tmp_path / "r.sqlite", waits())
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE NVTX", b"CR\xffATE TABLE NVTX"))
    with pytest.raises(BadInput, match="cannot be read as SQLite"):
        open_log(path)
