"""Sharded checkpoint: each mesh rank's own weights and moments, and a manifest that says whose.

Of ranks that hold the same, the first writes it. All files are written and synced before rank 0
gives their folder its name, so that a crash at any moment leaves the checkpoint before, whole. That
one is kept, for the last may be damaged later. What was dealt for one mesh fits no other.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine.core.config import Policy
from engine.core.errors import BadInput
from engine.core.limits import open_regular, parse_json, read_bytes
from engine.core.writing import unwritten
from engine.training.loop.checkpoint import Damaged, Facts, Saved, digest, sync
from engine.training.loop.resume import require_equal
from engine.training.parallel.mesh_run import MeshRun

MANIFEST = "mesh.json"
FILE = "rank_{}.safetensors"
BEGUN = ".new"  # behind the name of a folder that is being written


def save_mesh(
    folder: Path, run: MeshRun, step: int, facts: Facts | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> None:  # fmt: skip
    """`step` is the next one to do. All ranks save, to a folder that they share; `stage` is told
    when a rank's file, if it writes one, is there and the checkpoint not in its place yet. Raises
    BadInput where the step was saved before, or files of other ranks are not here."""
    try:
        _save_mesh(folder, run, step, facts, stage)
    except (OSError, SafetensorError) as fault:
        what = f"rank {run.rank.rank}'s checkpoint of step {step}"
        raise unwritten(folder, what, fault) from None


def _save_mesh(
    folder: Path, run: MeshRun, step: int, facts: Facts | None, stage: Callable[[str], None]
) -> None:
    done, rank = folder / f"step_{step}", run.rank
    told: dict[str, Any] = {"step": step, "facts": {**(facts or {}), **dealt(run)}}
    told["sha256"] = digest({}, json.dumps(told))
    part = done.with_name(done.name + BEGUN)
    if rank.rank == 0:
        if done.exists():
            raise BadInput(f"{done}: is there already; let one run at a time train into a folder")
        for left in folder.glob(f"step_*{BEGUN}"):  # by a run that was killed
            shutil.rmtree(left)
    rank.transport.barrier()
    part.mkdir(parents=True, exist_ok=True)
    path, wrote = _file(part, run), torch.zeros(rank.ranks, device=rank.device)
    if path == part / FILE.format(rank.rank):
        state = {name: tensor.contiguous().cpu() for name, tensor in run.trained.state().items()}
        of = _of(path, told["sha256"])
        save_file(state, path, metadata={"of": of, "sha256": digest(state, of)})
        wrote[rank.rank] = 1
    stage("checkpoint write")
    if wrote[rank.rank]:
        sync(path)
    wrote = run.all.all_reduce(wrote, "checkpoint")  # which all of them wait for
    if rank.rank == 0:
        writers = wrote.nonzero().flatten().tolist()
        if not all((part / FILE.format(writer)).exists() for writer in writers):
            raise BadInput(
                f"{folder}: not all ranks' files are here; give a folder that all machines share"
            )
        (part / MANIFEST).write_text(json.dumps(told), encoding="utf-8")
        sync(part / MANIFEST)
        sync(part)
        os.replace(part, done)
        sync(folder)
        for old in finished(folder)[2:]:
            shutil.rmtree(old)
    rank.transport.barrier()


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
    parts = finished(folder)
    for part in parts:
        found: dict[str, Tensor] = {}
        fault, saved = "", Saved(-1, {})
        try:
            saved, own = _manifest(part)
            same(folder, saved, here)
            run.trained.ready(saved.step)
            found = _read(_file(part, run), run.trained.state(), own)
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
    split = dealing.mesh.context > 1
    return {
        "mesh": str(dealing.mesh),
        "zero": _said(dealing.zero),
        "sequence_parallel": dealing.sequence_parallel,
        "attention": _said(dealing.attention) if split else "none",
        "layout": _said(dealing.layout) if split else "none",
        "schedule": _said(dealing.schedule) if dealing.planned else "none",
        "microbatches": dealing.microbatches,
        "architecture": json.dumps(run.model.raw, sort_keys=True),
    }


def _said(policy: Policy) -> str:
    """Its name, or all its settings where it has any."""
    settings = policy.model_dump()
    return str(settings["kind"]) if len(settings) == 1 else json.dumps(settings, sort_keys=True)


def finished(folder: Path) -> list[Path]:
    """Checkpoints that were finished, the latest first."""
    steps = re.compile(r"step_\d+", re.ASCII)  # int() refuses some of what Unicode calls digits
    found = [each for each in folder.glob("step_*") if steps.fullmatch(each.name)]
    return sorted(found, key=lambda each: -int(each.name[5:]))


def _manifest(part: Path) -> tuple[Saved, str]:
    """What it says, and the digest of that."""
    try:
        told = parse_json(read_bytes(part / MANIFEST, "config_bytes"), MANIFEST)
        saved = Saved(int(told["step"]), dict(told["facts"]))
        said = told.pop("sha256", None)  # those written before there was one have none
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise Damaged(f"{MANIFEST}: {fault}") from None
    own = digest({}, json.dumps(told))
    if part.name != f"step_{saved.step}" or said not in (None, own):
        raise Damaged(f"{MANIFEST}: its bytes are not those written")
    return saved, own


def _of(path: Path, manifest: str) -> str:
    """What a rank's file says of itself: its place, and the digest of the manifest it was written
    with. Another rank's, step's or run's has tensors as many and as large."""
    return f"{path.name} of {manifest}"


def _read(path: Path, like: dict[str, Tensor], manifest: str) -> dict[str, Tensor]:
    """The tensors of a rank's file, as many and as large as `like`'s."""
    try:
        open_regular(path).close()
        with safe_open(path, "pt") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
            if shapes != {name: list(tensor.shape) for name, tensor in like.items()}:
                raise Damaged(f"{path.name}: holds other tensors")
            told = file.metadata() or {}
            found = {name: file.get_tensor(name) for name in shapes}
    except (SafetensorError, OSError, BadInput) as fault:
        raise Damaged(f"{path.name}: {str(fault)[:80]}") from None
    of = told.get("of", "")  # those written before it was told have none
    if digest(found, of) != told.get("sha256"):
        raise Damaged(f"{path.name}: its bytes are not those written")
    if of and of != _of(path, manifest):
        raise Damaged(f"{path.name}: of another rank, step or run")
    return found


def _fill(run: MeshRun, found: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in run.trained.state().items():
            tensor.copy_(found[name])
        run.trained.filled()


def _set_aside(parts: list[Path], run: MeshRun) -> None:
    """Rename damaged ones once all ranks have read: the next save must not count on them."""
    run.rank.transport.barrier()
    if run.rank.rank == 0:
        for part in parts:
            aside = part.with_name(f"{part.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            os.replace(part, aside)


def _file(part: Path, run: MeshRun) -> Path:
    """Where the state of this rank lies: in the first rank's file where several have the same."""
    trained = run.trained
    return part / FILE.format(trained.axis.members[trained.keeper])
