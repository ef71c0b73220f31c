"""A write that fails says so in one line and leaves what was there whole."""

import errno
import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core import writing
from engine.core.chrome.write import save_chrome_trace
from engine.core.errors import BadInput
from engine.core.events import Level, Span, Told
from engine.core.file import load, save
from engine.core.writing import json_text, write_text, written
from engine.training.loop.checkpoint import (
    earlier,
    load_checkpoint,
    previous,
    save_checkpoint,
)
from tests.malformed.run_files import run_log
from widgets.export import share
from workbench.api.json_text import write_json
from workbench.cli.output import print_json

FAULTS = [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EIO]


def failing(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", FAULTS)
@pytest.mark.parametrize("write", [save, save_chrome_trace])
def test_what_was_there_stays_whole(tmp_path, monkeypatch, number, write):
    path = write(run_log(), tmp_path / "a.file")
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", failing(number))
    with pytest.raises(BadInput, match=os.strerror(number)) as fault:
        write(run_log(), path)
    assert "\n" not in str(fault.value) and str(path) in str(fault.value)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.file"]


@pytest.mark.parametrize("write", [save, save_chrome_trace])
def test_a_folder_that_went_is_said(tmp_path, write):
    folder = tmp_path / "gone"
    folder.mkdir()
    shutil.rmtree(folder)
    with pytest.raises(BadInput, match="cannot write"):
        write(run_log(), folder / "a.file")


def test_a_full_disk_is_said_and_the_old_run_opens(tmp_path, monkeypatch):
    full = "/dev/full"
    if not os.path.exists(full):
        pytest.skip("no /dev/full here")
    path = save(run_log(), tmp_path / "a.run")
    (tmp_path / "part").symlink_to(full)
    monkeypatch.setattr(writing, "_beside", lambda path: tmp_path / "part")
    with pytest.raises(BadInput, match="No space left"):
        save(run_log(), path)
    assert len(load(path)) == len(run_log())


def test_a_device_or_pipe_is_not_put_away_for_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="a device or a pipe, not a file"):
        save(run_log(), tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_who_may_read_a_file_stays_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "a", "the text")
    path.chmod(0o600)
    write_text(path, "b", "the text")
    assert path.read_text() == "b" and path.stat().st_mode & 0o777 == 0o600


def test_a_fault_within_the_block_is_no_half_file(tmp_path):
    with pytest.raises(KeyError), written(tmp_path / "a", "it") as part:
        part.write_text("half")
        raise KeyError
    assert os.listdir(tmp_path) == []
    write_text(tmp_path / "a", "whole", "it")
    assert (tmp_path / "a").read_text() == "whole"


def test_of_two_that_write_at_once_the_last_is_whole(tmp_path):
    path = tmp_path / "a"
    with written(path, "it") as first:
        first.write_text("first, and longer")
        with written(path, "it") as second:
            second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first, and longer" and os.listdir(tmp_path) == ["a"]


def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(tmp_path):
    for name, age in (
        (".a.0.part", 7200),
        (".a.1.part", 60),
        (".b.0.part", 7200),
        ("a.part", 7200),
    ):
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, times=(time.time() - age,) * 2)
    write_text(tmp_path / "a", "whole", "it")
    assert sorted(os.listdir(tmp_path)) == [".a.1.part", ".b.0.part", "a", "a.part"]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_text("old")
    link.symlink_to(kept)
    write_text(link, "new", "it")
    assert link.is_symlink() and kept.read_text() == "new"
    device = tmp_path / "device"
    device.symlink_to(os.devnull)
    write_text(device, "gone", "it")
    assert device.is_symlink() and not os.path.isfile(os.devnull)
    with pytest.raises(BadInput, match="cannot write it"):
        write_text(tmp_path, "a folder", "it")


def state(value):
    weights = {"w": torch.full((4, 3), float(value), requires_grad=True)}
    return weights, torch.optim.AdamW(weights.values())


def saved(path, *steps):
    for step in steps:
        save_checkpoint(path, step, *state(step), {"seed": 0})


@pytest.mark.parametrize("number", FAULTS)
@pytest.mark.parametrize("place", range(3))
def test_a_checkpoint_that_cannot_be_written_leaves_a_whole_one(
    tmp_path, monkeypatch, number, place
):
    """At each of the moves into place in turn."""
    path = tmp_path / "checkpoint.safetensors"
    saved(path, 1, 2)
    moves, real = [], os.replace

    def replace(source, target):
        moves.append(target)
        if len(moves) == place + 1:
            raise OSError(number, os.strerror(number))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(BadInput, match="checkpoint of step 3") as fault:
        saved(path, 3)
    monkeypatch.setattr(os, "replace", real)
    assert os.strerror(number) in str(fault.value)
    weights, optimizer = state(0)
    found = load_checkpoint(path, weights, optimizer)
    assert (
        found is not None
        and found.step in (1, 2)
        and float(weights["w"][0, 0].item()) == found.step
    )
    saved(path, 3)
    found = load_checkpoint(path, *state(0))
    assert found is not None and found.step == 3 and not found.fallback


def test_two_damaged_checkpoints_do_not_cost_the_training(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    saved(path, 1, 2, 3)
    for place in (path, previous(path)):
        data = bytearray(place.read_bytes())
        data[-3] ^= 4
        place.write_bytes(data)
    weights, optimizer = state(0)
    found = load_checkpoint(path, weights, optimizer)
    assert found is not None and found.step == 1 and float(weights["w"][0, 0].item()) == 1.0
    assert found.fallback.count("damaged") == 2
    assert len(list(tmp_path.glob("*.damaged"))) == 2 and earlier(path).exists()
    saved(path, 4)
    assert load_checkpoint(path, *state(0)).step == 4


def test_all_damaged_is_said(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    saved(path, 1, 2, 3)
    for place in (path, previous(path), earlier(path)):
        place.write_bytes(place.read_bytes()[:-5])
    with pytest.raises(BadInput, match="no whole checkpoint"):
        load_checkpoint(path, *state(0))


@pytest.mark.parametrize("write", [save, save_chrome_trace])
def test_a_name_that_is_no_text_holds_a_file_and_a_folder_none(tmp_path, write):
    name = tmp_path / os.fsdecode(b"a\xff.file")
    assert write(run_log(), name).stat().st_size > 0
    for folder in (Path("/"), tmp_path):
        with pytest.raises(BadInput, match="cannot write"):
            write(run_log(), folder)
    assert os.listdir(tmp_path) == [name.name]


NONE = float("nan"), float("inf"), -float("inf")


def strict(text):
    """Read as other programs read JSON. Raises AssertionError for a number that it has none of."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_numbers_that_json_has_none_of_leave_as_null(tmp_path, capsys):
    log = run_log()
    for place, value in enumerate(NONE):
        log.emit(Span(1.0, "a", "b", 0.5, flops=value, bytes=1.0, tag=""))
        log.emit(Level(1.0, "a", f"c{place}", value))
    log.emit(Told(1.0, {"knob": {"turned": list(NONE)}}))
    saved = strict(save_chrome_trace(log, tmp_path / "t.json").read_text())
    assert saved == strict(share.trace(log))
    told = [one["args"] for one in saved["traceEvents"] if one["name"] == "told"]
    assert told == [{"knob": {"turned": [None] * 3}}]
    print_json({"a": np.float32("nan"), "b": np.float64(1.5), "c": NONE})
    assert strict(capsys.readouterr().out) == {"a": None, "b": 1.5, "c": [None] * 3}
    assert strict(write_json({"a": [1.0, *NONE], "b": iter([{"c": NONE}])}))["a"] == [
        1.0,
        *[None] * 3,
    ]
    assert json_text({1.5: NONE}) == '{"1.5": [null, null, null]}'


def test_what_others_read_as_json_is_written_by_json_text():
    root = Path(writing.__file__).parents[2]
    places = [*(root / "workbench/cli").rglob("*.py"), *(root / "widgets/export").rglob("*.py"),
              root / "engine/core/chrome/write.py"]  # fmt: skip
    assert len(places) > 20
    assert not [place for place in places if "json.dump" in place.read_text()]
