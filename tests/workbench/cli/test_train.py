"""`workbench train` on token files: a model folder comes out, and stopping costs nothing."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.core.events import Level
from engine.core.file import load
from engine.core.paths import dataset
from engine.distributed.faults import RankLost
from engine.models.loading.load import load as load_model
from engine.training.loop.alone import alone
from tests.engine.models.small import raw
from workbench.cli.main import main
from workbench.cli.train import goes_on

SHORT = "steps=6 warmup=1 decay=2 tokens=64 context=16 long_context=16 report=1 checkpoint=2"
KNOBS = [word for pair in SHORT.split() for word in ("--set", pair)] + ["--set", "threads=1"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a tiny config and tokens for it."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(raw("qwen3", num_hidden_layers=1)))
    np.save(tmp_path / "one.npy", np.ones(1, np.uint16))
    np.save(tmp_path / "tokens.npy", np.tile(np.arange(2, 50, dtype=np.uint16), 20))
    return tmp_path


def words(place: Path, out: str, *more: str) -> list[str]:
    told = ["train", str(place / "tiny"), "--data", str(place / "tokens.npy")]
    return [*told, "--out", str(place / out), *KNOBS, *more]


def losses(path: Path) -> list[float]:
    return [level.value for level in load(path).of(Level) if level.name == "loss"]


def test_a_folder_below_home_is_found_by_its_tilde(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main([*words(place, "out"), "--out", "~/trained"]) == 0
    found = {path.name for path in (tmp_path / "trained").iterdir()}
    assert {"config.json", "model.safetensors", "training.json", "training.run"} <= found
    assert not (tmp_path / "~").exists()


def test_a_config_and_tokens_become_a_model(place: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(words(place, "out", "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["loss"] == losses(place / "out" / "training.run")[-1]
    model = load_model(place / "out")
    assert model.config.family == "qwen3"
    facts = json.loads((place / "out" / "training.json").read_text())
    assert facts["config"]["training"]["steps"] == 6
    assert main(words(place, "out")) == 0
    told = capsys.readouterr().out
    assert "finished before" in told and "--set steps=12" in told and "figure" not in told
    assert losses(place / "out" / "training.run"), "the run of the training is still there"
    weights = place / "out" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert main(words(place, "out")) == 0
    assert "finished before" not in capsys.readouterr().out and weights.read_bytes() == whole
    # What was trained is where a second training begins.
    again = [*words(place, "again"), "--json"]
    again[1] = str(place / "out")
    assert main(again) == 0
    assert json.loads(capsys.readouterr().out)["loss"] < said["loss"] + 0.1
    assert main(again) == 0 and json.loads(capsys.readouterr().out)["finished_before"]
    # Where other weights came to lie, neither is it finished nor gone on with.
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert main(again) == 2
    assert "made with begin = weights of out (" in capsys.readouterr().err


def test_a_folders_tokenizer_reads_the_text_and_goes_along(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    model = tmp_path / "draft"
    shutil.copytree(dataset("models/stdlib-draft-1m"), model)
    (tmp_path / "a.txt").write_text("def f(x):\n    return x\n" * 60)
    told = ["train", str(model), "--data", str(tmp_path / "a.txt"), "--out", str(tmp_path / "out")]
    assert main([*told, *KNOBS, "--set", "rate=1e-3"]) == 0
    found = losses(tmp_path / "out" / "training.run")
    assert found[-1] < found[0]
    assert (tmp_path / "out" / "tokenizer.json").is_file()
    assert "loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--set", "context=4000"], "longer than the model's 128 positions"),
        (["--set", "bogus=1"], "no such knob"),
        (["--set", "tokens=48", "--ranks", "2"], "cannot share evenly"),
        (["--ranks", "0"], "at least 1"),
        (["--ranks", "3", "--mesh", "tensor=2"], "2 ranks do not divide 3"),
        (["--ranks", "3", "--mesh", "data=2"], "3 are asked for"),
        (["--mesh", "tensors=2"], "write NAME=N"),
        (["--mesh", "data=2", "--set", "mesh.data=4"], "both --mesh and --set say it"),
        (["--mesh", "tensor=2"], "vocabulary 97 cannot be dealt evenly to 2 tensor ranks"),
        (["--mesh", "context=3"], "windows of 16 on 3 context ranks"),
        (["--mesh", "pipeline=2"], "1 layers cannot be dealt to 2 stages"),
        (["--mesh", "data=2", "--set", "zero=5"], "nothing, optimizer"),
        pytest.param(
            ["--ranks", "2", "--device", "cuda"],
            "torch sees no GPU",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU"),
        ),
        (["--fault", "nonsense"], "RANK:PHASE:STEP"),
        (["--fault", "0:forward:1"], "one process has no other ranks"),
        (["--ranks", "2", "--fault", "2:forward:1"], "ranks are numbered 0 to 1"),
        (["--ranks", "2", "--fault", "1:forward:6"], "steps are numbered 0 to 5"),
        (["--ranks", "2", "--fault", "1:forwards:1"], "phases: resume, forward, backward, coll"),
        (["--ranks", "2", "--fault", "1:resume:1"], "ranks resume in step 0 only"),
        (
            ["--ranks", "2", "--fault", "1:checkpoint write:2"],
            "that step has no checkpoint write; step 1 is the first that does",
        ),
        (["--data", "missing.npy"], "no such file"),
        (["--validation", "missing.npy"], "no such file"),
        (["--validation", "one.npy"], "1 tokens to judge by; at least 2"),
        (["--set", "held_out=0.001"], "0 tokens to judge by; at least 2"),
        (["--data", __file__], "holds no tokenizer.json"),
    ],
)
def test_what_does_not_fit_is_one_line(
    more: list[str], says: str, place: Path, capsys: pytest.CaptureFixture
) -> None:
    more = [str(place / word) if word == "one.npy" else word for word in more]
    assert main(words(place, "out", *more)) == 2
    said = capsys.readouterr().err.strip()
    assert says in said and said.startswith("workbench: ") and "\n" not in said


def test_two_do_not_train_into_one_folder(place: Path, capsys: pytest.CaptureFixture) -> None:
    (place / "out").mkdir()
    with alone(place / "out"):
        assert main(words(place, "out")) == 2
    assert "another training writes there" in capsys.readouterr().err
    with alone(place / "out"):
        assert not list((place / "out").iterdir())


@pytest.mark.parametrize("recipe", ["agreement-100k", "stdlib-draft-1m"])
def test_nor_by_recipes(recipe: str, place: Path, capsys: pytest.CaptureFixture) -> None:
    with alone(place / "out"):
        assert main(["train", recipe, "--fast", "--out", str(place / "out")]) == 2
        assert not list((place / "out").iterdir())
    assert "another training writes there" in capsys.readouterr().err


@pytest.mark.parametrize("recipe", ["", "agreement-100k"])
def test_a_model_that_no_training_left_there_stays(
    recipe: str, place: Path, capsys: pytest.CaptureFixture
) -> None:
    (place / "out").mkdir()
    theirs = place / "out" / "model.safetensors"
    theirs.write_text("theirs")
    told = ["train", recipe, "--fast", "--out", str(place / "out")] if recipe else None
    assert main(told or words(place, "out")) == 2
    assert "out: holds a model already (model.safetensors" in capsys.readouterr().err
    assert theirs.read_text() == "theirs"


def test_after_the_loss_of_a_rank_it_is_said_where_the_command_goes_on(tmp_path: Path) -> None:
    lost = RankLost(1, "rank 1: was killed")
    assert goes_on(lost, tmp_path) == "; the same command begins anew"
    (tmp_path / "checkpoint" / "step_20").mkdir(parents=True)
    assert f"goes on from step_20 of {tmp_path / 'checkpoint'}" in goes_on(lost, tmp_path)
    assert not goes_on(BadInput("port 5: in use"), tmp_path)


def test_a_recipe_takes_no_data_settings(place: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["train", "stdlib-5m", "--out", str(place / "o"), "--set", "steps=3"]) == 2
    assert "--set: for training on tokens; give --data FILE" in capsys.readouterr().err


def test_the_models_own_folder_is_left_as_it_is(place: Path, capsys: pytest.CaptureFixture) -> None:
    told = words(place, "tiny")
    assert main(told) == 2
    assert "the model's own folder" in capsys.readouterr().err


def test_a_port_in_use_is_one_line(place: Path, capsys: pytest.CaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(words(place, "out", "--ranks", "2", "--port", port)) == 2
    assert f"port {port}: " in capsys.readouterr().err


def test_knobs_are_listed(place: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(words(place, "out", "--knobs", "--json")) == 0
    found = {knob["path"]: knob["value"] for knob in json.loads(capsys.readouterr().out)}
    assert found["training.steps"] == 6 and found["parallel.mesh.data"] == 1


@pytest.mark.parametrize(
    ("how", "mesh"),
    [
        (signal.SIGINT, ""),
        (signal.SIGINT, "data=2"),
        pytest.param(signal.SIGTERM, "", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "data=2", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "data=2", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_saves_a_checkpoint_and_the_same_command_goes_on(
    how: signal.Signals, mesh: str, place: Path, root: Path
) -> None:
    ranks = ["--mesh", mesh] if mesh else []
    long = words(place, "out", *ranks, "--set", "steps=50000", "--set", "checkpoint=50000")
    # A shell that starts tests in the background has them ignore interrupts.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from workbench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code, *long], cwd=root, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
    )  # fmt: skip
    assert started.stderr is not None
    said = ""
    while not re.search(r"training: [1-9][\d,]* of 50,000", said):  # it has begun to train
        line = started.stderr.readline()
        assert line, said
        said += line
    os.killpg(started.pid, how)  # as a terminal does: to ranks too
    rest = started.stderr.read()
    assert started.wait(300) == 130
    started.stderr.close()
    assert "stopped; checkpoint at step" in rest and "Traceback" not in rest
    before = losses(place / "out" / "training.run")
    assert 0 < len(before) < 50_000
    # Up to the decay a longer and a shorter training are the same.
    few = words(
        place, "out", *ranks, "--set", f"steps={len(before) + 5}", "--save", str(place / "b.run")
    )
    assert main(few) == 0
    assert len(losses(place / "b.run")) == 5


@pytest.mark.slow  # loads torch three times
@pytest.mark.parametrize(
    ("mesh", "fault"), [("data=2", ""), ("context=2", ""), ("context=2", "1:backward:3")]
)
def test_torchrun_trains_too(mesh: str, fault: str, place: Path, root: Path) -> None:
    code = "import sys; from workbench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    (place / "go.py").write_text(code)
    more = ["--limit", "60", "--mesh", mesh, *(["--fault", fault] if fault else [])]
    ran = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1",
         "--nproc-per-node=2", str(place / "go.py"), *words(place, "out", *more)],
        capture_output=True, text=True, cwd=root, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    if fault:
        assert ran.returncode != 0
        assert "rank 1: lost to rank 0" in ran.stderr
        return
    assert ran.returncode == 0, ran.stderr
    main(words(place, "ranks", "--mesh", mesh))
    ours, theirs = (losses(place / out / "training.run") for out in ("ranks", "out"))
    assert ours == theirs


@pytest.mark.parametrize(
    "words", [["quantise", "agreement-100k"], ["train", "agreement-100k"], ["train", "stdlib-5m"]]
)
def test_an_empty_name_is_not_the_present_folder(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "a.txt"
    text.write_text("the cat sat " * 100)
    data = ["--data", str(text)] if words == ["train", "agreement-100k"] else []
    assert main([*words, *data, "--out", ""]) == 2
    assert "give a folder's name" in capsys.readouterr().err and [*tmp_path.iterdir()] == [text]
