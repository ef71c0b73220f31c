"""`workbench train` over a mesh finds what one process finds, killed or not.

Two ranks along each axis and four in a composition; with --full eight, and every phase of a step
killed on every rank of a mesh of four.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from engine.core.config import update
from engine.core.difference import relative
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.distributed.faults import RankLost
from engine.distributed.rank import Place, Rank
from engine.models.loading.load import load
from engine.training.loop.precision import narrow
from engine.training.loop.settings import Training
from engine.training.trainer.config import TrainerConfig
from engine.training.trainer.ranks import agreed
from engine.training.trainer.run import run, run_as_rank
from tests.engine.distributed.test_launch import alive
from tests.engine.training.tiny import tiny, trainer
from tests.engine.training.trainer.test_faults import failed, losses

EXACT = 1e-5  # relative to a tensor's largest number
# Clipping bites in every step, windows grow, and eps is what `Learning.eps` says of exactness.
SHORT = Training(
    steps=4, warmup=1, decay=2, rate=1e-2, tokens=64, context=8, long_context=16, report=1,
    evaluate=4, checkpoint=2, clip=0.05, eps=1e-4, precision="float32",
)  # fmt: skip
PIPE = {"mesh.pipeline": 2, "microbatches": 2}
TWO = {
    "tensor": {"mesh.tensor": 2},
    "tensor, norms split": {"mesh.tensor": 2, "sequence_parallel": True},
    "context": {"mesh.context": 2},
    "pipeline, tied": {**PIPE, "schedule": "zb_h1"},
    "data": {"mesh.data": 2},
    "data, moments dealt": {"mesh.data": 2, "zero": "optimizer"},
    "data, weights dealt": {"mesh.data": 2, "zero": "weights"},
}
FOUR = {
    "tensor and pipeline": {
        **PIPE,
        "mesh.tensor": 2,
        "sequence_parallel": True,
        "zero": "optimizer",
    }
}
EIGHT = {
    "all but context": {**PIPE, "mesh.tensor": 2, "mesh.data": 2, "zero": "optimizer"},
    "all but data": {**PIPE, "mesh.tensor": 2, "mesh.context": 2, "schedule": "zb_h1"},
    "no pipeline": {"mesh.tensor": 2, "mesh.context": 2, "mesh.data": 2, "zero": "weights"},
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model whose head is its embedding, and tokens for it."""
    folder = tmp_path_factory.mktemp("mesh")
    return tiny(folder, "qwen3", vocab_size=64, tie_word_embeddings=True)


def config(place: Path, out: str, **changes: object) -> TrainerConfig:
    return trainer(place, out, SHORT, changes)


def parallel(settings: dict[str, object]) -> dict[str, object]:
    return {f"parallel.{name}": value for name, value in settings.items()}


def trained(asked: TrainerConfig) -> tuple[dict[int, float], dict[str, torch.Tensor], list[float]]:
    """Losses by step, the weights that were written, and what validation found."""
    log = Run.execute(run, asked).log
    judged = [level.value for level in log.of(Level) if level.name == "validation_loss"]
    return losses(log), load_file(Path(asked.out) / "model.safetensors"), judged


@pytest.fixture(scope="module")
def alone(place: Path):
    """What one process finds."""
    return trained(config(place, "alone"))


def same(found, right) -> float:
    """The largest error of losses and weights."""
    assert found[0].keys() == right[0].keys() and found[1].keys() == right[1].keys()
    errors = [abs(found[0][step] / right[0][step] - 1) for step in right[0]]
    errors += [abs(a / b - 1) for a, b in zip(found[2], right[2], strict=True)]
    return max(errors + [relative(found[1][name], right[1][name]) for name in right[1]])


def holds(place: Path, name: str, settings: dict[str, object], alone) -> None:
    asked = config(place, name, **parallel(settings))
    assert 0 < same(trained(asked), alone) <= EXACT
    # What came out is a model folder as any other.
    assert load(Path(asked.out)).config.family == "qwen3"


@pytest.mark.parametrize("name", [*TWO, *FOUR])
def test_a_mesh_finds_what_one_process_finds(name: str, place: Path, alone) -> None:
    holds(place, name, {**TWO, **FOUR}[name], alone)


@pytest.mark.slow
@pytest.mark.parametrize("name", EIGHT)
def test_so_do_eight_ranks(name: str, place: Path, alone) -> None:
    holds(place, name, EIGHT[name], alone)


def test_a_norm_with_numbers_counted_twice_would_show(place: Path, alone) -> None:
    # Two copies of every gradient have a norm larger by the root of two.
    other = trained(config(place, "twice", **{"training.clip": SHORT.clip / 2**0.5}))
    assert same(other, alone) > 100 * EXACT


@pytest.mark.skipif(not narrow("bfloat16"), reason="this processor has no products of bfloat16")
def test_narrow_products_are_as_narrow_on_a_mesh(place: Path) -> None:
    half = {"training.precision": "bfloat16"}
    right = trained(config(place, "half", **half))
    for name, settings in (
        ("half tensor", {**PIPE, "mesh.tensor": 2}), ("half context", {"mesh.context": 2})
    ):  # fmt: skip
        found = trained(config(place, name, **half, **parallel(settings)))
        assert found[0] == pytest.approx(right[0], rel=2e-3)


def resumes(
    place: Path, settings: dict[str, object], phase: str, rank: int, whole: dict[int, float]
) -> None:
    """A rank killed there is named, nobody is left, and the same command finds the same losses."""
    out = f"{phase} {rank} {settings}"
    struck = config(place, out, fault=f"{rank}:{phase}:3", **parallel(settings))
    log, fault, pids = failed(struck)
    assert isinstance(fault, RankLost) and fault.rank == rank
    assert f"rank {rank}: was killed by SIGKILL while in {phase} of step 3" in str(fault)
    assert len(pids) == struck.ranks and not [pid for pid in pids if alive(pid)]
    done = Run.execute(run, update(struck, {"fault": ""})).log
    assert {mark.name for mark in done.of(Mark)} >= {"resume", "checkpoint"}
    assert losses(log) | losses(done) == whole


def undisturbed(place: Path, settings: dict[str, object]) -> dict[int, float]:
    """Losses that nothing happens to."""
    asked = config(place, f"whole {settings}", **parallel(settings))
    return losses(Run.execute(run, asked).log)


@pytest.mark.parametrize(
    ("settings", "phase", "rank"),
    [
        (TWO["pipeline, tied"], "backward", 1),
        (TWO["tensor"], "optimiser", 0),
        (TWO["data, moments dealt"], "checkpoint write", 1),
        pytest.param(TWO["data, weights dealt"], "collective", 0, marks=pytest.mark.slow),
    ],
)
def test_a_killed_rank_of_a_mesh_costs_no_loss(
    settings: dict[str, object], phase: str, rank: int, place: Path
) -> None:
    resumes(place, settings, phase, rank, undisturbed(place, settings))


@pytest.fixture(scope="module")
def four(place: Path) -> dict[int, float]:
    return undisturbed(place, FOUR["tensor and pipeline"])


@pytest.mark.slow
@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize(
    "phase",
    ["forward", "backward", "collective", "optimiser", "checkpoint", "checkpoint write"],
)
def test_nor_does_one_of_four_in_any_phase(
    phase: str, rank: int, place: Path, four: dict[int, float]
) -> None:
    resumes(place, FOUR["tensor and pipeline"], phase, rank, four)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"mesh.tensor": 4}, "key/value heads 2 cannot be dealt evenly to 4 tensor ranks"),
        ({"mesh.pipeline": 4, "microbatches": 2}, "3 layers cannot be dealt to 4 stages"),
        ({"mesh.context": 3}, "windows of 8 on 3 context ranks: tokens 8: do not divide"),
        ({"mesh.data": 3}, "windows of 8, which they cannot share evenly"),
        ({**PIPE, "zero": "weights"}, "zero weights: a stage's weights stay whole"),
        ({"mesh.pipeline": 2, "schedule": "interleaved_1f1b"}, "1 microbatches do not divide"),
    ],
)
def test_what_does_not_divide_is_told_before_anything_starts(
    settings: dict[str, object], told: str, place: Path
) -> None:
    with pytest.raises(BadInput, match=told):
        Run.execute(run, config(place, "never", **parallel(settings)))
    assert not (place / "never").exists()


def test_a_checkpoint_of_another_mesh_is_refused(place: Path, alone) -> None:
    cases = {
        "tensor": ({"mesh.data": 2}, "made with mesh = dp1 × pp1 × cp1 × tp2, this run has dp2"),
        "alone": ({"mesh.data": 2}, "holds a checkpoint of one process"),
    }
    if not (place / "tensor").exists():  # run by itself
        trained(config(place, "tensor", **parallel(TWO["tensor"])))
    for out, (settings, told) in cases.items():
        with pytest.raises(BadInput, match=told):
            Run.execute(run, config(place, out, **parallel(settings)))


def test_what_a_killed_run_left_is_cleared_and_other_attention_is_refused(place: Path) -> None:
    asked = config(place, "left", **parallel({**TWO["context"], "attention": "ring"}))
    saves = Path(asked.out) / "checkpoint"
    for name in ("step_2.new", "step_3.new"):
        (saves / name).mkdir(parents=True)
        (saves / name / "rank_1.safetensors").write_bytes(b"half")
    Run.execute(run, asked)
    assert sorted(each.name for each in saves.iterdir()) == ["step_2", "step_4"]
    with pytest.raises(BadInput, match="made with attention = .*, this run has .*rescale"):
        Run.execute(run, update(asked, {"parallel.attention.rescale": False}))


def test_one_process_goes_on_where_ranks_finished_no_checkpoint(place: Path) -> None:
    asked = config(place, "unfinished", **{"training.steps": 1, "training.decay": 0})
    (Path(asked.out) / "checkpoint" / "step_2.new").mkdir(parents=True)
    Run.execute(run, asked)
    assert (Path(asked.out) / "model.safetensors").exists()


def test_a_file_where_ranks_write_checkpoints_is_told_before_the_first_step(place: Path) -> None:
    asked = config(place, "file", **parallel(TWO["data"]))
    Path(asked.out).mkdir()
    (Path(asked.out) / "checkpoint").write_text("")
    log = Log()
    with pytest.raises(BadInput, match="checkpoint: a file, where ranks write checkpoints"):
        run(asked, Live(log))
    assert not losses(log)


def test_torchruns_ranks_leave_the_models_own_folder_as_it_is_too(place: Path) -> None:
    asked = config(place, "tiny", limit=0.5)
    nowhere = Place(1, 2, "127.0.0.1", 9)
    with pytest.raises(BadInput, match="the model's own folder"):
        run_as_rank(asked, Live(Log()), nowhere)


def test_ranks_that_were_given_other_settings_are_refused() -> None:
    meeting = SimpleNamespace(store=dist.HashStore())
    ranks = [cast(Rank, SimpleNamespace(rank=at, meeting=meeting)) for at in range(3)]
    agreed(ranks[0], {"rate": 0.1, "data": "ab"})
    agreed(ranks[1], {"rate": 0.1, "data": "ab"})
    with pytest.raises(BadInput, match=r"rank 2: has rate = 0.2, another rank has 0.1; start all"):
        agreed(ranks[2], {"rate": 0.2, "data": "ab"})
