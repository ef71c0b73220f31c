"""Checkpoint of a training: weights, AdamW's moments, step and their origin, as safetensors.

Written and synced beside the old one, which becomes the previous one, then moved into its place: a
crash at any moment leaves a whole checkpoint. A damaged one is set aside for the previous one.
Nothing random is stored: what a step draws follows from the seed and the step.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import AdamW

from engine.core.errors import BadInput
from engine.core.limits import open_regular
from engine.core.writing import unwritten

MOMENTS = ("exp_avg", "exp_avg_sq")  # AdamW's names for the first and the second
WIDEST, HEADER = 8, 1 << 26  # bytes of a number; bytes for names and facts, and to spare
Facts = Mapping[str, str | int | float | bool]


class Damaged(Exception):
    """A file that is not a whole checkpoint; the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a checkpoint holds besides tensors. `fallback`: why an older one was taken, or ""."""

    step: int
    facts: Facts
    fallback: str = ""


def save_checkpoint(
    path: Path,
    step: int,
    weights: Mapping[str, Tensor],
    optimizer: AdamW,
    facts: Facts,
    stage: Callable[[str], None] = lambda name: None,
) -> None:
    """`step` is the next one to do; `facts` tell foreign files apart. `stage` is told when the new
    file is written but not in its place yet ("checkpoint write"), and when the old one has left it
    ("checkpoint swap")."""
    tensors = {name: weight.detach().contiguous() for name, weight in weights.items()}
    for name, weight in weights.items():
        for moment in MOMENTS:
            if weight in optimizer.state:
                tensors[f"{moment}/{name}"] = optimizer.state[weight][moment]
    said = {"step": str(step), "facts": json.dumps(dict(facts))}
    said["sha256"] = digest(tensors, said["step"] + said["facts"])
    fresh = path.with_name(f"{path.name}.new")
    try:
        save_file(tensors, fresh, metadata=said)
        stage("checkpoint write")
        sync(fresh)
        if path.exists():
            if previous(path).exists():
                os.replace(previous(path), earlier(path))
            os.replace(path, previous(path))
        stage("checkpoint swap")
        os.replace(fresh, path)
        sync(path.parent)
    except (OSError, SafetensorError) as fault:
        with suppress(OSError):  # it takes room that is needed
            fresh.unlink(missing_ok=True)
        raise unwritten(path, f"the checkpoint of step {step}", fault) from None


def load_checkpoint(path: Path, weights: Mapping[str, Tensor], optimizer: AdamW) -> Saved | None:
    """Fill `weights` and `optimizer` in place; None where there is no checkpoint yet.

    A damaged one is renamed `….damaged` and the one before it taken. Raises BadInput where no whole
    one is left, or where it holds another model's tensors.
    """
    numbers = sum(weight.numel() for weight in weights.values())
    faults, most = [], (1 + len(MOMENTS)) * WIDEST * numbers + HEADER
    places = (path, previous(path), earlier(path))
    for place in places:
        try:
            step, facts, tensors = _read(place, most)
        except FileNotFoundError:
            faults.append(f"{place.name}: missing")
            continue
        except Damaged as fault:
            faults.append(f"{place.name}: damaged ({fault})")
            continue
        _fill(place, tensors, weights, optimizer, step)
        for damaged in places[: places.index(place)]:
            # Else the next save would put the damaged file in the whole one's place.
            if damaged.exists():
                os.replace(damaged, damaged.with_name(f"{damaged.name}.damaged"))
        return Saved(step, facts, "; ".join(faults))
    if all(fault.endswith("missing") for fault in faults):
        return None
    raise BadInput(f"{path.parent}: no whole checkpoint ({'; '.join(faults)}); delete it to begin")


def previous(path: Path) -> Path:
    """Where the checkpoint before `path` lies."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def earlier(path: Path) -> Path:
    """Where the one before the previous lies: two damaged files do not cost the training."""
    return path.with_name(f"{path.stem}.earlier{path.suffix}")


def remove_checkpoint(path: Path) -> None:
    """Delete it and what was kept beside it."""
    for place in (path, previous(path), earlier(path)):
        place.unlink(missing_ok=True)


def digest(tensors: Mapping[str, Tensor], said: str = "") -> str:
    """SHA-256 over names, dtypes, shapes and bytes, and what is said beside them."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    found.update(said.encode())
    return found.hexdigest()


def _read(path: Path, most: int) -> tuple[int, Facts, dict[str, Tensor]]:
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        with open_regular(path) as plain:
            size = os.fstat(plain.fileno()).st_size
        if size > most:  # before memory is asked for
            raise Damaged(f"{size:,} bytes, this model's has at most {most:,}")
        with safe_open(path, "pt") as file:
            said = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        step, facts = int(said["step"]), json.loads(said["facts"])
    except (SafetensorError, OSError, ValueError, RuntimeError) as fault:
        raise Damaged(str(fault)[:80]) from None
    except KeyError as fault:
        raise Damaged(f"no {fault} in its header") from None
    # Of those written before the step and facts were in it, the digest has the tensors alone.
    whole = (digest(tensors, said["step"] + said["facts"]), digest(tensors))
    if said.get("sha256") not in whole:
        raise Damaged("its bytes are not those that were written")
    return step, facts, tensors


def _fill(
    path: Path, tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor], optimizer: AdamW,
    step: int,
) -> None:  # fmt: skip
    for name, weight in weights.items():
        found = tensors.get(name)
        if found is None or found.shape != weight.shape:
            told = "is missing" if found is None else f"has shape {list(found.shape)}"
            raise BadInput(f"{path}: of another model, {name} {told}; train into another folder")
        with torch.no_grad():
            weight.copy_(found)
        if f"{MOMENTS[0]}/{name}" in tensors:
            optimizer.state[weight] = {
                "step": torch.tensor(float(step)),
                **{moment: tensors[f"{moment}/{name}"] for moment in MOMENTS},
            }


def sync(path: Path) -> None:
    """Until what was written is on the disk; of a folder, its names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
