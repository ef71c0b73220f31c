"""What launched ranks do in the tests of checkpoints."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.distributed.rank import Rank
from engine.training.parallel.checkpoint import load_mesh, save_mesh
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.mesh_run import MeshRun
from engine.training.parallel.rank_main import begun


def resumed(rank: Rank, given: dict[str, Any]) -> None:
    """Steps straight through, and the same with a new start from a checkpoint halfway: arrays
    through/NAME and again/NAME; then `others`, tries of the
    folder by runs of other kinds, and of a changed file."""
    folder = Path(given["folder"])
    for name, config in given["configs"].items():
        place = folder / name
        through, first = begun(rank, config), begun(rank, config)
        for step in range(config.steps):
            stepped(through, config, step)
        half = config.steps // 2
        for step in range(half):
            stepped(first, config, step)
            save_mesh(place, first, step + 1)
        again = begun(rank, config)
        saved = load_mesh(place, again)
        assert saved is not None
        rank.record.put(f"{name}/begun", np.array(saved.step))
        for step in range(saved.step, config.steps):
            stepped(again, config, step)
        for kind, run in (("through", through), ("again", again)):
            for key, tensor in run.trained.state().items():
                rank.record.put(f"{name}/{kind}/{key}", tensor.numpy())
    for name, (place, config) in given["others"].items():
        try:
            load_mesh(folder / place, begun(rank, config))
        except BadInput as fault:
            rank.record.put(f"told/{name}", np.frombuffer(str(fault).encode(), np.uint8))
    damaged(rank, folder, given["configs"]["optimizer"])
    exchanged(rank, folder, given["configs"]["optimizer"])


def twice(rank: Rank, given: dict[str, Any]) -> None:
    """A step saved a second time, and what is there then: array told; and where no folder can be:
    array unwritten."""
    place = Path(given["folder"])
    run = begun(rank, given["config"])
    run.trained.ready(1)
    save_mesh(place, run, 1)
    try:
        save_mesh(place, run, 1)
    except BadInput as fault:
        rank.record.put("told", np.frombuffer(str(fault).encode(), np.uint8))
    below_a_file = place / "step_1" / "mesh.json" / "more"
    try:
        save_mesh(below_a_file, run, 1)
    except BadInput as fault:
        rank.record.put("unwritten", np.frombuffer(str(fault).encode(), np.uint8))
    saved = load_mesh(place, begun(rank, given["config"]))
    assert saved is not None and saved.step == 1 and not saved.fallback


def apart(rank: Rank, given: dict[str, Any]) -> None:
    """Ranks save to a folder each; in the first one's lies a file of no rank that wrote one."""
    place = Path(given["folder"]) / str(rank.rank)
    run = begun(rank, given["config"])
    run.trained.ready(1)
    stale = place / "step_1.new" / "rank_7.safetensors"
    save_mesh(place, run, 1, stage=lambda name: stale.touch())


def stepped(run: MeshRun, config: MeshTrainingConfig, step: int) -> None:
    """One step of training."""
    run.gradients(config.ids(step))
    run.update(config.learning.rate)


def damaged(rank: Rank, folder: Path, config: MeshTrainingConfig) -> None:
    """What is said of a folder whose last checkpoint rank 1 finds damaged, then both of them."""
    broken = folder / "broken"
    if rank.rank == 0:
        shutil.copytree(folder / "optimizer", broken)
    rank.transport.barrier()
    for step, told in ((2, "last"), (1, "both")):
        path = broken / f"step_{step}" / "rank_1.safetensors"
        if rank.rank == 1:
            whole = bytearray(path.read_bytes())
            whole[-5] ^= 1
            path.write_bytes(whole)
        rank.transport.barrier()
        try:
            saved = load_mesh(broken, begun(rank, config))
            assert saved is not None and saved.step == 1
            said = saved.fallback
        except BadInput as fault:
            said = str(fault)
        rank.record.put(f"told/{told}", np.frombuffer(said.encode(), np.uint8))


def exchanged(rank: Rank, folder: Path, config: MeshTrainingConfig) -> None:
    """What is said where rank 1's file of the last checkpoint is another whole one."""
    for name in ("step_2/rank_0", "step_1/rank_1"):
        place = folder / f"exchanged_{name[-1]}"
        if rank.rank == 0:
            shutil.copytree(folder / "optimizer", place)
            shutil.copy(place / f"{name}.safetensors", place / "step_2" / "rank_1.safetensors")
        rank.transport.barrier()
        saved = load_mesh(place, begun(rank, config))
        assert saved is not None and saved.step == 1
        rank.record.put(f"told/{name}", np.frombuffer(saved.fallback.encode(), np.uint8))
