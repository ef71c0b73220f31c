"""`workbench quantise`: where its model may go, and that nothing of another's is lost."""

import errno
import json
import os
import shutil

import pytest

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.models.loading.find import find
from engine.models.loading.load import save
from engine.training.quantisation import quantise as quantising
from tests.engine.models import small
from workbench.cli.main import main

MODEL = "agreement-100k"


@pytest.fixture
def source(tmp_path):
    return shutil.copytree(dataset(f"models/{MODEL}"), tmp_path / "source")


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def quantise(source, out, *more):
    return main(["quantise", str(source), "--out", str(out), "--group", "32", "--json", *more])


def test_a_folder_is_written_and_written_again(source, tmp_path, capsys):
    out = tmp_path / "out"
    (out / ".git").mkdir(parents=True)
    assert quantise(source, out) == 0
    assert json.loads((out / "quantised.json").read_text())["bits"] == 4
    (out / "notes.txt").write_text("mine")
    assert quantise(source, out, "--bits", "8") == 0
    assert json.loads((out / "quantised.json").read_text())["bits"] == 8
    assert json.loads((out / "config.json").read_text())["quantization_config"]["bits"] == 8
    assert (out / "notes.txt").read_text() == "mine"
    assert find(str(out)).config.layers == find(str(source)).config.layers


@pytest.mark.parametrize(
    "kind", ["a model", "a sharded model", "notes", "a false record", "a link"]
)
def test_another_s_folder_is_refused_in_one_line(source, tmp_path, capsys, kind):
    out = tmp_path / "theirs"
    if kind == "a model":
        shutil.copytree(source, out)
    elif kind == "a link":
        out.symlink_to(shutil.copytree(source, tmp_path / "elsewhere"))
    else:
        out.mkdir()
        name = {"a sharded model": "model-00001-of-00002.safetensors", "notes": "notes.txt"}
        (out / name.get(kind, "quantised.json")).write_text('{"made_by": "somebody"}')
    before = files(out)
    assert quantise(source, out) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds what no quantising wrote" in line and str(out) in line
    assert files(out) == before


@pytest.mark.parametrize("what", ["save_file", "dumps"])
def test_a_disk_that_fills_leaves_the_earlier_model(source, tmp_path, monkeypatch, capsys, what):
    out = tmp_path / "out"
    assert quantise(source, out) == 0
    before = files(out)
    capsys.readouterr()

    def full(*words, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(quantising if what == "save_file" else json, what, full)
    assert quantise(source, out, "--bits", "8") == 2
    assert "No space left" in capsys.readouterr().err.splitlines()[-1]
    assert files(out) == before


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(tmp_path, value):
    config = small.config("llama-2")
    weights = small.weights(config)
    name = "model.layers.0.mlp.up_proj.weight"
    weights[name] = weights[name].clone()
    weights[name][0, 0] = value
    save(tmp_path / "m", config, weights)
    with pytest.raises(BadInput, match=f"tensor '{name}' has weights that are no numbers"):
        quantising.quantise(tmp_path / "m", tmp_path / "out", 4, 64, "nearest", False, "")
    assert not (tmp_path / "out").exists()
