"""A run on a mesh resumes bit for bit, and a checkpoint of another mesh says so."""

import pytest
from safetensors import safe_open

from engine.core.config import kinds, update
from engine.core.errors import BadInput
from engine.distributed.launch import launch
from engine.training.parallel import checkpoint as mesh_checkpoint
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.zero.zero import Zero
from tests.engine.training.parallel import works

SMALL = {"steps": 4, "model.vocabulary": 50, "batch": 4}
KINDS = sorted(kinds(Zero))
CONFIGS = {
    **{kind: {**SMALL, "mesh.data": 2, "zero": kind} for kind in KINDS},
    "pipeline": {**SMALL, "mesh.pipeline": 2, "microbatches": 2},
}
OTHERS = {
    "mesh = dp2 × pp1 × cp1 × tp1, this run has dp1 × pp1 × cp1 × tp2": (
        "nothing", {**SMALL, "mesh.tensor": 2},
    ),
    "zero = optimizer, this run has weights": (
        "optimizer", {**SMALL, "mesh.data": 2, "zero": "weights"},
    ),
    "architecture = {": ("nothing", {**SMALL, "mesh.data": 2, "model.hidden": 40}),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mesh")


@pytest.fixture(scope="module")
def records(folder):
    config = MeshTrainingConfig()
    given = {
        "folder": str(folder),
        "configs": {name: update(config, changes) for name, changes in CONFIGS.items()},
        "others": {told: (at, update(config, changes)) for told, (at, changes) in OTHERS.items()},
    }
    return launch(works.resumed, 2, given, limit=300)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_run_resumes_bit_for_bit(records, name):
    for record in records:
        assert record.array(f"{name}/begun") == 2
        begin = f"{name}/through/"
        keys = [key.removeprefix(begin) for key in record.arrays if key.startswith(begin)]
        assert len(keys) >= 3
        for key in keys:
            through, again = (record.array(f"{name}/{kind}/{key}") for kind in ("through", "again"))
            assert (through == again).all(), key


@pytest.mark.parametrize("told", OTHERS)
def test_a_checkpoint_dealt_another_way_says_so_on_every_rank(records, told):
    for record in records:
        said = record.array(f"told/{told}").tobytes().decode()
        assert f"made with {told}" in said
        assert "\n" not in said


def test_a_damaged_file_of_one_rank_has_all_take_the_checkpoint_before(records):
    said = [record.array("told/last").tobytes().decode() for record in records]
    assert said[0] == "step_2: damaged (another rank's file)"
    assert said[1] == "step_2: damaged (rank_1.safetensors: its bytes are not those written)"
    for record in records:
        both = record.array("told/both").tobytes().decode()
        assert "no whole checkpoint (step_1: damaged" in both and "delete it to begin" in both


@pytest.mark.parametrize("name", ["step_2/rank_0", "step_1/rank_1"])
def test_a_whole_file_of_another_rank_or_step_is_not_taken_for_a_ranks_own(records, name):
    said = records[1].array(f"told/{name}").tobytes().decode()
    assert said == "step_2: damaged (rank_1.safetensors: of another rank, step or run)"


def test_a_manifest_that_was_changed_is_damaged(records, folder, tmp_path):
    whole = (folder / "optimizer" / "step_2" / "mesh.json").read_text()
    part = tmp_path / "step_2"
    part.mkdir()
    (part / "mesh.json").write_text(whole)
    assert mesh_checkpoint._manifest(part)[0].step == 2
    for was, becomes in (('"step": 2', '"step": 1'), ('"microbatches": 1', '"microbatches": 3')):
        (part / "mesh.json").write_text(whole.replace(was, becomes))
        with pytest.raises(mesh_checkpoint.Damaged, match="its bytes are not those written"):
            mesh_checkpoint._manifest(part)


def test_a_step_is_not_saved_over_one_that_is_there(tmp_path):
    given = {"folder": str(tmp_path), "config": update(MeshTrainingConfig(), SMALL)}
    (record,) = launch(works.twice, 1, given, limit=300)
    assert "step_1: is there already" in record.array("told").tobytes().decode()
    unwritten = record.array("unwritten").tobytes().decode()
    assert "cannot write rank 0's checkpoint of step 1 (Not a directory)" in unwritten


def test_a_folder_that_ranks_do_not_share_is_told_whatever_lies_there(tmp_path):
    dealt = {**SMALL, "mesh.data": 2, "zero": "optimizer"}
    given = {"folder": str(tmp_path), "config": update(MeshTrainingConfig(), dealt)}
    with pytest.raises(BadInput, match="not all ranks' files are here"):
        launch(works.apart, 2, given, limit=300)


def test_a_folder_whose_name_ends_in_no_plain_digits_is_no_checkpoint(tmp_path):
    for name in ("step_3", "step_²", "step_x"):
        (tmp_path / name).mkdir()
    assert [each.name for each in mesh_checkpoint.finished(tmp_path)] == ["step_3"]


def test_replicas_keep_each_its_own_share_of_the_numbers(records, folder):
    sizes = []
    for rank in (0, 1):
        with safe_open(folder / "optimizer" / "step_2" / f"rank_{rank}.safetensors", "pt") as file:
            sizes.append({name: len(file.get_tensor(name)) for name in file.keys()})  # noqa: SIM118
    assert sizes[0] == sizes[1] and len(set(sizes[0].values())) == 1
