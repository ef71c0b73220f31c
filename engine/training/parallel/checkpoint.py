"""A run on a mesh on disk: each rank's own weights and moments, and a manifest that says whose.

Every rank writes and syncs its file before rank 0 moves the manifest into place, so that a crash at
any moment leaves the checkpoint before, whole. What was dealt for one mesh fits no other.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from engine.core.errors import BadInput
from engine.training.checkpoint import digest, sync
from engine.training.parallel.work import MeshRun

MANIFEST = "mesh.json"


def save_mesh(folder: Path, run: MeshRun, step: int) -> None:
    """`step` is the next one to do. All ranks save, to a folder that they share."""
    part = folder / f"step_{step}"
    part.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.contiguous() for name, tensor in run.trained.state().items()}
    path = _file(part, run.rank.rank)
    save_file(state, path, metadata={"sha256": digest(state)})
    sync(path)
    run.rank.transport.barrier()
    if run.rank.rank == 0:
        fresh = folder / f"{MANIFEST}.new"
        fresh.write_text(json.dumps({"step": step, **_dealt(run)}), encoding="utf-8")
        sync(part)
        sync(fresh)
        os.replace(fresh, folder / MANIFEST)
        sync(folder)
        for old in folder.glob("step_*"):
            if old != part:
                shutil.rmtree(old)
    run.rank.transport.barrier()


def load_mesh(folder: Path, run: MeshRun) -> int:
    """Fill the rank's weights and moments; the next step to do, 0 where there is no checkpoint.

    Raises BadInput for a checkpoint of another mesh, another way of dealing or another model, and
    for a damaged one.
    """
    manifest = folder / MANIFEST
    if not manifest.exists():
        return 0
    try:
        told = json.loads(manifest.read_text(encoding="utf-8"))
        step = int(told.pop("step"))
    except (OSError, ValueError, KeyError) as fault:
        raise BadInput(f"{manifest}: not a manifest ({fault}); delete {folder}") from None
    for what, here in _dealt(run).items():
        if told.get(what) != here:
            raise BadInput(
                f"{folder}: a checkpoint of {what} {told.get(what)}, and this run has {here}; "
                "train on with what it was written by, or into another folder"
            )
    _fill(_file(folder / f"step_{step}", run.rank.rank), run, step)
    return step


def _dealt(run: MeshRun) -> dict[str, Any]:
    """What decides which numbers a rank has."""
    config = run.config
    return {
        "mesh": str(config.mesh),
        "zero": config.zero.kind,
        "schedule": config.schedule.kind if config.planned else "none",
        "model": config.model.model_dump(),
    }


def _fill(path: Path, run: MeshRun, step: int) -> None:
    run.trained.ready(step)
    try:
        with safe_open(path, "pt") as file:
            said = (file.metadata() or {}).get("sha256")
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as fault:
        raise BadInput(f"{path}: damaged ({fault}); delete its folder to begin anew") from None
    if digest(found) != said:
        raise BadInput(f"{path}: its bytes are not those written; delete its folder to begin anew")
    with torch.no_grad():
        for name, tensor in run.trained.state().items():
            tensor.copy_(found[name])


def _file(part: Path, rank: int) -> Path:
    return part / f"rank_{rank}.safetensors"
