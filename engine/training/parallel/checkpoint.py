"""A run on a mesh on disk: each rank's own weights and moments, and a manifest that says whose.

Every rank writes and syncs its file before rank 0 gives their folder its name, so that a crash at
any moment leaves the checkpoint before, whole. That one is kept, for the last may be damaged later.
What was dealt for one mesh fits no other.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine.core.errors import BadInput
from engine.training.checkpoint import Damaged, Facts, Saved, digest, sync
from engine.training.parallel.mesh_run import MeshRun
from engine.training.resume import require_equal

MANIFEST = "mesh.json"
BEGUN = ".new"  # behind the name of a folder that is being written


def save_mesh(
    folder: Path, run: MeshRun, step: int, facts: Facts | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> None:  # fmt: skip
    """`step` is the next one to do. All ranks save, to a folder that they share; `stage` is told
    when a rank's file is written and the checkpoint not in its place yet."""
    done = folder / f"step_{step}"
    part = done.with_name(done.name + BEGUN)
    part.mkdir(parents=True, exist_ok=True)
    path = _file(part, run)
    if path.name == _own(run):
        state = {name: tensor.contiguous().cpu() for name, tensor in run.trained.state().items()}
        save_file(state, path, metadata={"sha256": digest(state)})
        stage("checkpoint write")
        sync(path)
    mine = torch.tensor([float(path.name == _own(run))], device=run.rank.device)
    writers = float(run.all.all_reduce(mine, "checkpoint"))  # which all of them wait for
    if run.rank.rank == 0:
        if len(list(part.glob("rank_*"))) < writers:
            raise BadInput(
                f"{folder}: not all ranks' files are here; give a folder that all machines share"
            )
        told = {"step": step, "facts": {**(facts or {}), **dealt(run)}}
        (part / MANIFEST).write_text(json.dumps(told), encoding="utf-8")
        sync(part / MANIFEST)
        sync(part)
        if done.exists():
            shutil.rmtree(done)
        os.replace(part, done)
        sync(folder)
        for old in _steps(folder)[2:]:
            shutil.rmtree(old)
    run.rank.transport.barrier()


def load_mesh(
    folder: Path, run: MeshRun, facts: Facts | None = None,
    same: Callable[[Path, Saved, Facts], None] = require_equal,
) -> Saved | None:  # fmt: skip
    """Fill the rank's weights and moments; None where there is no checkpoint yet.

    A damaged one is renamed `….damaged` and the one before it taken, by all ranks. Raises BadInput
    on all of them where none is whole, and where `same` does for one of another run, another mesh
    or another way of dealing.
    """
    here, faults = {**(facts or {}), **dealt(run)}, list[str]()
    parts = _steps(folder)
    for part in parts:
        found: dict[str, Tensor] = {}
        fault, saved = "", Saved(-1, {})
        try:
            saved = _manifest(part)
            same(folder, saved, here)
            run.trained.ready(saved.step)
            found = _read(_file(part, run), run.trained.state())
        except Damaged as damage:
            fault = f"{part.name}: damaged ({damage})"
        # All ranks take the same one, so that a file of another rank's may be at fault too.
        bad = torch.tensor([float(bool(fault))], device=run.rank.device)
        if float(run.all.all_reduce(bad, "resume", largest=True)) == 0:
            _fill(run, found)
            _set_aside(parts[: parts.index(part)], run)
            return Saved(saved.step, saved.facts, faults[0] if faults else "")
        faults.append(fault or f"{part.name}: damaged (another rank's file)")
    if faults:
        raise BadInput(f"{folder}: no whole checkpoint ({'; '.join(faults)}); delete it to begin")
    return None


def dealt(run: MeshRun) -> dict[str, str | int | float | bool]:
    """What decides which numbers a rank has and in which order they are summed."""
    dealing = run.dealing
    return {
        "mesh": str(dealing.mesh),
        "zero": dealing.zero.kind,
        "sequence_parallel": dealing.sequence_parallel,
        "attention": dealing.attention.kind if dealing.mesh.context > 1 else "none",
        "layout": dealing.layout.kind if dealing.mesh.context > 1 else "none",
        "schedule": dealing.schedule.model_dump_json() if dealing.planned else "none",
        "microbatches": dealing.microbatches,
        "architecture": json.dumps(run.model.raw, sort_keys=True),
    }


def _steps(folder: Path) -> list[Path]:
    """Checkpoints that were finished, the latest first."""
    found = [each for each in folder.glob("step_*") if each.name[5:].isdigit()]
    return sorted(found, key=lambda each: -int(each.name[5:]))


def _manifest(part: Path) -> Saved:
    try:
        told = json.loads((part / MANIFEST).read_text(encoding="utf-8"))
        return Saved(int(told["step"]), dict(told["facts"]))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise Damaged(f"{MANIFEST}: {fault}") from None


def _read(path: Path, like: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a rank's file, as many and as large as `like`'s."""
    try:
        with safe_open(path, "pt") as file:
            said = (file.metadata() or {}).get("sha256")
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as fault:
        raise Damaged(f"{path.name}: {str(fault)[:80]}") from None
    if digest(found) != said:
        raise Damaged(f"{path.name}: its bytes are not those written")
    if {k: v.shape for k, v in found.items()} != {k: v.shape for k, v in like.items()}:
        raise Damaged(f"{path.name}: holds other tensors")
    return found


def _fill(run: MeshRun, found: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in run.trained.state().items():
            tensor.copy_(found[name])


def _set_aside(parts: list[Path], run: MeshRun) -> None:
    """Rename damaged ones once all ranks have read: the next save must not count on them."""
    run.rank.transport.barrier()
    if run.rank.rank == 0:
        for part in parts:
            aside = part.with_name(f"{part.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            os.replace(part, aside)


def _own(run: MeshRun) -> str:
    return f"rank_{run.rank.rank}.safetensors"


def _file(part: Path, run: MeshRun) -> Path:
    """Where the state of this rank lies: in the first rank's file where several have the same."""
    trained = run.trained
    return part / f"rank_{trained.axis.members[trained.keeper]}.safetensors"
