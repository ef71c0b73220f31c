"""Checkpoint: weights of a Hugging Face folder, checked against the config, then read lazily."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from torch import Tensor

from engine.core.errors import BadInput
from engine.core.limits import check, inside
from engine.kernels.quantised.weight import Quantised
from engine.models.config import ModelConfig
from engine.models.families.fields import read_json
from engine.models.families.quantised import FIELD, method_of
from engine.models.loading.formats import PICKLES, refuse_pickle
from engine.models.loading.left_out import check_left_out
from engine.models.loading.quantised_tensors import StoredCodes, stored_codes
from engine.models.loading.safetensors_file import Stored, read_header
from engine.models.loading.stacked_experts import StoredExpert, stored_expert
from engine.models.parameters import all_parameters
from engine.models.tensors.reading import Reading

INDEX = "model.safetensors.index.json"


class Checkpoint(Mapping[str, Tensor]):
    """Tensors by the names `config` expects; each is read from its file when asked for."""

    def __init__(self, folder: Path, config: ModelConfig) -> None:
        held = _stored(folder)
        self.stored: dict[str, Stored | StoredCodes | StoredExpert] = {}
        raw = read_json(inside(folder, "config.json"))
        settings = raw.get(FIELD)
        if settings is not None:
            method_of(settings, str(folder / "config.json"))
        for parameter in all_parameters(config):
            name = parameter.name
            # A checkpoint of the bare model (GPT-2's own, for one) leaves out the first part.
            found: Stored | StoredCodes | StoredExpert | None = None
            if settings is not None:
                found = stored_codes(held, name, parameter.shape, settings)
            found = found or held.get(name) or held.get(name.partition(".")[2])
            found = found or stored_expert(held, name)
            if found is None:
                raise BadInput(
                    f"{folder}: tensor {name!r} is missing; "
                    f"config.json ({config.architecture}, {config.layers} layers) asks for it"
                )
            if found.shape != parameter.shape:
                raise BadInput(
                    f"{found.path}: tensor {found.name!r} has shape {list(found.shape)}; "
                    f"config.json asks for {list(parameter.shape)}"
                )
            self.stored[name] = found
        taken = self.stored.values()
        read = {each.name: each if isinstance(each, Stored) else None for each in taken}
        check_left_out(held, read, config, raw)
        self.reading = Reading(str(folder), sum(each.bytes for each in self.stored.values()))

    def __getitem__(self, name: str) -> Tensor:
        found = self.stored[name].read()
        self.reading.took(self.stored[name].bytes)
        return found

    def codes(self, name: str) -> Quantised | None:
        """The tensor as codes and scales; None where it is plain numbers."""
        stored = self.stored[name]
        if not _in_codes(stored):
            return None
        found = stored.codes()
        self.reading.took(stored.bytes)
        return found

    @property
    def holds_codes(self) -> bool:
        """Whether a tensor is quantised."""
        return any(map(_in_codes, self.stored.values()))

    def bytes(self, width: int) -> int:
        """Bytes of the model in memory, its plain numbers `width` bytes each."""
        return sum(
            5 * stored.bytes // 4 if _in_codes(stored) else math.prod(stored.shape) * width
            for stored in self.stored.values()
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)


def _in_codes(
    stored: Stored | StoredCodes | StoredExpert,
) -> TypeGuard[StoredCodes | StoredExpert]:
    """Whether that is a quantised tensor."""
    if isinstance(stored, StoredExpert):
        return stored.scales is not None
    return isinstance(stored, StoredCodes)


def _stored(folder: Path) -> dict[str, Stored]:
    """Every tensor the folder's safetensors files hold."""
    if (folder / INDEX).is_file():
        return _indexed(folder)
    single = folder / "model.safetensors"
    paths = [single] if single.is_file() else sorted(folder.glob("*.safetensors"))
    if not paths:
        raise _no_weights(folder)
    found: dict[str, Stored] = {}
    for path in paths:
        held = read_header(_file(folder, path.name))
        twice = next((name for name in held if name in found), None)
        if twice is not None:
            raise BadInput(f"{path}: tensor {twice!r} is also in {found[twice].path.name}")
        found |= held
    return found


def _indexed(folder: Path) -> dict[str, Stored]:
    where = inside(folder, INDEX)
    placed = read_json(where).get("weight_map")
    if not isinstance(placed, dict) or not all(isinstance(f, str) for f in placed.values()):
        raise BadInput(f"{where}: field 'weight_map' must map tensor names to file names")
    check(where, "tensors", len(placed), "tensors")
    headers = {name: read_header(_file(folder, name)) for name in sorted(set(placed.values()))}
    for name, file in placed.items():
        if name not in headers[file]:
            raise BadInput(f"{folder / file}: tensor {name!r} is missing; {INDEX} places it there")
    return {name: headers[file][name] for name, file in placed.items()}


def _file(folder: Path, name: str) -> Path:
    """A safetensors file of the folder by its plain name."""
    if not name.endswith(".safetensors"):
        raise BadInput(
            f"{folder / INDEX}: names {name[:80]!r}; only files of the folder itself, *.safetensors"
        )
    return inside(folder, name)


def _no_weights(folder: Path) -> BadInput:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    pickled = next((file.name for file in files if file.suffix in PICKLES), None)
    if pickled is None:
        return BadInput(f"{folder}: holds no *.safetensors; give a Hugging Face model folder")
    return refuse_pickle(folder / pickled)
