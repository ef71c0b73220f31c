"""What launched ranks do in the tests of checkpoints."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.distributed.rank import Rank
from engine.training.parallel.checkpoint import load_mesh, save_mesh
from engine.training.parallel.work import MeshRun


def resumed(rank: Rank, given: dict[str, Any]) -> None:
    """Steps straight through, and the same with a new start from a checkpoint halfway: arrays
    through/NAME and again/NAME; then `others`, tries of the
    folder by runs of other kinds, and of a changed file."""
    folder = Path(given["folder"])
    for name, config in given["configs"].items():
        place = folder / name
        through, first = MeshRun(rank, config), MeshRun(rank, config)
        for step in range(config.steps):
            through.gradients(step)
            through.update()
        half = config.steps // 2
        for step in range(half):
            first.gradients(step)
            first.update()
            save_mesh(place, first, step + 1)
        again = MeshRun(rank, config)
        begun = load_mesh(place, again)
        rank.record.put(f"{name}/begun", np.array(begun))
        for step in range(begun, config.steps):
            again.gradients(step)
            again.update()
        for kind, run in (("through", through), ("again", again)):
            for key, tensor in run.trained.state().items():
                rank.record.put(f"{name}/{kind}/{key}", tensor.numpy())
    for name, (place, config) in given["others"].items():
        try:
            load_mesh(folder / place, MeshRun(rank, config))
        except BadInput as fault:
            rank.record.put(f"told/{name}", np.frombuffer(str(fault).encode(), np.uint8))
    config = given["configs"]["nothing"]
    broken = folder / f"broken_{rank.rank}"
    shutil.copytree(folder / "nothing", broken)
    path = broken / "step_2" / f"rank_{rank.rank}.safetensors"
    whole = bytearray(path.read_bytes())
    whole[-5] ^= 1
    path.write_bytes(whole)
    try:
        load_mesh(broken, MeshRun(rank, config))
    except BadInput as fault:
        rank.record.put("told/changed", np.frombuffer(str(fault).encode(), np.uint8))
