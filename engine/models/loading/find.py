"""Models by name: a shipped one, a folder of the person's own, or a public architecture's shape."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.core.paths import dataset, datasets
from engine.models.config import ModelConfig
from engine.models.families import read_config
from engine.models.loading.formats import PICKLES, is_gguf, refuse_pickle
from engine.models.loading.public import architecture, called
from engine.models.loading.public import public as public

ADAPTER = "adapter_config.json"  # of peft: transformers would put it on the weights beside it
LONGEST = 200  # characters of a name that are said again

if TYPE_CHECKING:
    from engine.models.model import Model


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for. `folder`: of a checkpoint, or its GGUF file; None where only the
    architecture is known."""

    name: str
    config: ModelConfig
    folder: Path | None = None
    source: str = ""

    def open(
        self,
        dtype: str = "float32",
        *,
        random: bool = False,
        seed: int = 0,
        device: str = "cpu",
        activations: str = "auto",
    ) -> "Model":
        """The model itself, with its own weights or random ones, on a processor or a GPU.
        `activations`: "int8" quantises them for its own weights in codes."""
        from engine.models.loading.load import load, random_model  # torch: not for a shape alone

        if random:
            return random_model(self.config, seed, dtype, device, activations)
        if self.folder is None:
            raise BadInput(
                f"model {self.name!r}: only its architecture is known; "
                "run it with random weights (--random) or give a folder with its weights"
            )
        return load(self.folder, dtype, self.config, device, activations)


def find(name: str) -> Found:
    """A model by shipped name, by path of a folder, or by the name of a public architecture."""
    if name in shipped() or name in series():
        folder = dataset(f"models/{name}")
        return Found(name, read_config(folder), folder)
    path = _path(name)
    if path is not None and path.suffix in PICKLES:
        raise refuse_pickle(path)
    if path is not None and path.is_dir() and not (path / "config.json").exists():
        files = list(path.glob("*.gguf"))
        path = files[0] if len(files) == 1 else path
    if path is not None and is_gguf(path):
        from engine.models.loading.load import config_at

        return Found(path.stem, config_at(path), path)
    if path is not None and path.exists():
        folder = path.parent if path.is_file() else path
        if (folder / ADAPTER).exists():
            raise BadInput(
                f"{folder}: holds an adapter ({ADAPTER}), which is not put on its base model; "
                "merge them (peft: merge_and_unload, then save_pretrained) and give that folder"
            )
        return Found(folder.resolve().name, read_config(folder), folder)
    known = public()
    meant = called(name)
    if meant in known:
        facts = known[meant]
        return Found(meant, architecture(meant, facts), source=str(facts["source"]))
    names = [*shipped(), *known]
    raise BadInput(f"model {name[:LONGEST]!r}: no such folder or name; {suggest(name, names)}")


def _path(name: str) -> Path | None:
    """Where a name would lead; None of what no system takes for a path: nothing, what is too long,
    the home of nobody."""
    try:
        path = Path(name).expanduser()
        path.exists()
    except (OSError, RuntimeError):
        return None
    return path if name else None


def beside(model: str, name: str) -> str:
    """The model of that name that lies in the same folder as `model`; else the shipped one. So a
    rival comes from the same training's folder as what it is held against."""
    own = _path(model)
    if own is None or model in shipped():
        return name
    folder = own.parent / name
    return str(folder) if own.is_dir() and folder.is_dir() else name


def series() -> list[str]:
    """Names of shipped models that are there to be held against one another, "series/model"."""
    folder = datasets() / "models"
    found = (path.parent for path in folder.glob("*/*/config.json"))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def shipped() -> list[str]:
    """Names of the models that come with the workbench, weights and all."""
    folder = datasets() / "models"
    return sorted(path.parent.name for path in folder.glob("*/config.json"))
