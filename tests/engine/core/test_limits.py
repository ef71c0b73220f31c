"""Price limits: what would cost too much is refused by name before it is paid for."""

import bz2
import gzip
import json
import lzma
import os
import resource
import subprocess
import sys
import time
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from engine.core import limits, toml
from engine.core.chrome.read import read_chrome
from engine.core.errors import BadInput
from engine.core.file import load, save
from engine.core.paths import dataset
from engine.inference.workloads.traces.read import load as read_trace
from engine.models.loading.safetensors_file import read_header
from engine.training.data.corpus import gather
from engine.training.data.token_file import read_tokens
from engine.training.loop.checkpoint import Damaged, load_checkpoint
from engine.training.parallel import checkpoint as mesh_checkpoint
from engine.training.plan.csv_file import from_csv
from engine.training.trainer.config import TrainerConfig
from tests.malformed.run_files import run_log
from workbench import findings_table, kept_maps
from workbench.api.access import read_keys
from workbench.cost_model.tables import lines_of
from workbench.traces.read import open_log
from workbench.train_preflight import finished


def refused(call, *args):
    with pytest.raises(BadInput) as fault:
        call(*args)
    return str(fault.value)


def bomb(folder, column, value, rows):
    """A run of which one row stands `rows` times with a large value."""
    path = save(run_log(), folder / "bomb.run")
    table = pq.read_table(path)
    one = table.slice(table.num_rows - 1)
    place = one.column_names.index(column)
    made = pa.array([value])
    one = one.set_column(place, column, made.dictionary_encode() if column == "text" else made)
    many = one.take(pa.array(np.zeros(rows, np.int64)))
    whole = pa.concat_tables([table, many], promote_options="permissive")
    pq.write_table(whole.replace_schema_metadata(table.schema.metadata), path, compression="zstd")
    return path


@pytest.mark.parametrize(
    ("column", "value", "rows"),
    [("data", bytes(1 << 20), 20), ("text", "x" * (1 << 16), 2000), ("shape", [1] * 10**6, 1)],
)
def test_a_small_run_file_does_not_become_a_large_one(tmp_path, column, value, rows):
    path = bomb(tmp_path, column, value, rows)
    assert path.stat().st_size < 1 << 16
    with limits.changed(unpacked_free=4 << 20):
        assert "unpacked_ratio" in refused(load, path)


def test_the_refusal_asks_for_no_memory(tmp_path):
    """In a process that may take 600 MB more than its imports did."""
    path = bomb(tmp_path, "data", bytes(4 << 20), 200)
    code = (
        "import resource, sys; from engine.core.file import load\n"
        "pages = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages + (600 << 20),) * 2)\n"
        "try: load(sys.argv[1])\n"
        "except ValueError as fault: print(fault)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "unpacked_ratio" in ran.stdout, ran.stderr


def test_a_footer_that_lies_about_its_sizes_is_not_believed(tmp_path):
    path = bomb(tmp_path, "data", bytes(1 << 20), 20)
    facts = pq.ParquetFile(path).metadata
    told = sum(
        facts.row_group(0).column(n).total_uncompressed_size for n in range(facts.num_columns)
    )
    with limits.changed(unpacked_free=told // 40):
        assert "unpacked_ratio" in refused(load, path)


def test_limits_can_be_raised_and_names_are_checked(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("[]" + " " * 100)
    with limits.changed(config_bytes=50):
        line = refused(limits.read_bytes, path, "config_bytes")
        assert "config_bytes=50" in line and "WORKBENCH_LIMITS=config_bytes=" in line
        limits.change_as_told("config_bytes=102, lanes=7")
        assert limits.limits().lanes == 7 and len(limits.read_bytes(path, "config_bytes")) == 102
    assert limits.limits() == limits.Limits()
    for told in ("lane=3", "lanes", "lanes=0", "lanes=nan", "lanes=inf"):
        assert "limit" in refused(limits.change_as_told, told)
    assert limits.limits() == limits.Limits()


def test_a_complaint_is_one_line_of_bounded_length_that_no_terminal_obeys():
    line = str(BadInput("knob 'a\nb': \x1b[31m\u202e" + "x" * 10**6 + ": give another"))
    assert line.isprintable() and len(line) < 1500 and line.endswith("give another")
    assert line.startswith(r"knob 'a b': \x1b[31m\u202exx")


def test_a_header_of_very_many_tensors_is_refused_before_it_is_parsed(tmp_path):
    head = json.dumps({f"n{n}": {"data_offsets": [0, 0]} for n in range(9)}).encode()
    (tmp_path / "a").write_bytes(len(head).to_bytes(8, "little") + head)
    with limits.changed(tensors=8):
        assert "tensors=8" in refused(read_header, tmp_path / "a")


def test_only_plain_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.run")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.run").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.csv")
    asked = [("pipe.run", load), ("pipe.json", read_chrome), ("zero.run", load)]
    asked += [("pipe.csv", lambda path: list(lines_of(path)))]
    asked += [("pipe.csv", read) for read in (read_trace, toml.load, read_keys)]
    for name, read in asked:
        assert "not a plain file" in refused(read, tmp_path / name)
    assert "not a plain file" in refused(load, tmp_path)


def odd(path, kind):
    """A pipe, a device or a terabyte of nothing at `path`."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    return path


def read_in_time(read, path):
    """What the refusal said; the whole read within two seconds."""
    begun = time.monotonic()
    try:
        came = read(path)
    except (BadInput, Damaged) as fault:
        came = str(fault)
    assert time.monotonic() - begun < 2.0
    return came


@pytest.mark.parametrize("kind", ["pipe", "device", "terabyte"])
def test_no_reader_of_what_a_training_is_given_waits_or_fills_memory(tmp_path, kind):
    like = {"a": torch.zeros(2)}
    optimizer = torch.optim.AdamW(like.values())
    readers = {
        "a.npy": lambda path: read_tokens(path, 97, None),
        "a.bin": lambda path: read_tokens(path, 97, None),
        "a.txt": lambda path: read_tokens(path, 4096, dataset("models/stdlib-5m")),
        "checkpoint.safetensors": lambda path: load_checkpoint(path, like, optimizer),
        "rank_0.safetensors": lambda path: mesh_checkpoint._read(path, like, ""),
        "mesh.json": lambda path: mesh_checkpoint._manifest(path.parent),
        "maps.json": lambda path: kept_maps._read(path),
        "validation.txt": lambda path: limits.read_text(path),
        "findings.json": lambda path: findings_table.before(path) and None,
    }
    for name, read in readers.items():
        said = read_in_time(read, odd(tmp_path / name, kind))
        assert said == {} or (isinstance(said, str) and said), name  # no file: no rows of it
    config = TrainerConfig(model="stdlib-5m", out=str(tmp_path), data=str(tmp_path / "a.bin"))
    odd(tmp_path / "training.json", kind)
    assert read_in_time(lambda _: finished(config), tmp_path) == ""


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_library_is_gathered_past_what_is_no_file_of_its_own(tmp_path, kind):
    for number in range(60):
        (tmp_path / f"m{number}.py").write_text(f"x = {number}\n")
    whole = gather(tmp_path).digest
    odd(tmp_path / "odd.py", kind)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "other.py").symlink_to(__file__)
    assert read_in_time(gather, tmp_path).digest == whole
    os.truncate(odd(tmp_path / "odd.py", "terabyte"), 1 << 40)
    assert "text_bytes" in refused(gather, tmp_path)


def test_links_of_a_folder_stay_inside_it(tmp_path):
    folder, cache = tmp_path / "models" / "snapshots" / "m", tmp_path / "models" / "blobs"
    folder.mkdir(parents=True)
    cache.mkdir()
    (tmp_path / "secret").write_text("x")
    (cache / "b1").write_text("x")
    (folder / "plain").write_text("x")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "in").symlink_to("plain")
    (folder / "blob").symlink_to(cache / "b1")
    (folder / "circle").symlink_to("circle")
    for name in ("plain", "in", "blob"):
        assert limits.inside(folder, name) == folder / name
    for name in ("out", "circle", "../m/plain", "", "..", "a\0b"):
        assert refused(limits.inside, folder, name)


def trace(path, entries):
    path.write_text(json.dumps({"traceEvents": entries}))
    return read_chrome(path)


def test_a_trace_of_very_many_threads_has_as_many_lanes_as_are_let(tmp_path):
    many = [{"ph": "B", "name": f"n{n}", "pid": n, "tid": n, "ts": n} for n in range(30_000)]
    spans = [
        {"ph": "X", "name": "x", "pid": -n, "tid": n, "ts": n, "dur": 1} for n in range(30_000)
    ]
    made = trace(tmp_path / "t.json", [*many, *spans])
    assert len(made.spans.lanes) <= limits.limits().lanes + 1
    assert len(made.spans) == 30_000
    assert any("one lane" in note for note in made.notes)


def test_names_told_alike_of_different_threads_stay_apart(tmp_path):
    def told(pid, tid):
        about = {"pid": pid, "tid": tid, "ts": 1}
        return [{"ph": "M", "name": "thread_name", "args": {"name": "same"}, **about},
                {"ph": "X", "name": "x", "dur": 1, **about}]  # fmt: skip

    made = trace(tmp_path / "t.json", [*told(1, 1), *told("1", 1), *told(1, "1"), *told("1", "1")])
    assert len(set(made.spans.lanes)) == 4


@pytest.mark.parametrize("data", [b"[" + b" " * (100 << 20), b'[{"ph":"i"},' * (9 << 20)])
def test_a_packed_trace_unpacks_to_no_more_than_its_share(tmp_path, data):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(data, compresslevel=1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with limits.changed(unpacked_free=16 << 20):
        assert "unpacked_ratio" in refused(read_chrome, path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10


def test_a_million_packed_files_in_one_are_refused(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b"") * 200_000)
    assert "packed files in one" in refused(read_chrome, path)


def test_entries_broken_within_each_other_end(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b"[" + b'{"a":[{},' * 400_000)
    read_chrome(path)


@pytest.mark.parametrize("nasty", ["[" * 50_000, "[" * 200 + "]" * 200, "{" * 9])
def test_json_nests_no_deeper_than_is_let(nasty):
    with pytest.raises(ValueError):
        limits.parse_json(nasty.encode(), "here")


def test_a_cell_of_megabytes_is_refused_wherever_a_table_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("op,us\n" + "x" * 1_000_000 + ",1\n")
    for read in (lines_of, lambda path: [from_csv(path.read_text())]):
        with pytest.raises(BadInput, match="CSV"):
            list(read(path))
    assert limits.cells_of('a,"b,c"', "here") == ["a", "b,c"]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.json.xz", "t.zip", "t.run"])
@pytest.mark.parametrize("how", ["zip", "xz", "bzip2"])
def test_a_file_packed_in_a_way_that_is_not_read_is_called_by_it(tmp_path, name, how):
    data = b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2}]}'
    packed = {"xz": lzma.compress, "bzip2": bz2.compress}.get(how, bytes)(data)
    (tmp_path / name).write_bytes(packed)
    if how == "zip":
        with zipfile.ZipFile(tmp_path / name, "w") as made:  # not even made smaller
            made.writestr("t.json", data)
    with pytest.raises(BadInput, match=f"packed by {how}; give what is in it"):
        open_log(tmp_path / name)


def test_a_mark_of_utf8_before_a_text_is_no_part_of_it(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfop,us\nmm,1\n")
    (row,) = lines_of(tmp_path / "a.csv")
    assert row.text("op") == "mm"
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert toml.load(tmp_path / "a.toml") == {"a": 1}
    assert limits.parse_json(b'\xef\xbb\xbf{"a": 1}', "here") == {"a": 1}
