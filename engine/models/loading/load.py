"""Models from a Hugging Face folder or with random weights, and weights back into a folder."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.memory import GIB, require
from engine.core.writing import unwritten, write_text, written
from engine.models.config import ModelConfig
from engine.models.families import read_config
from engine.models.footprint import weight_bytes
from engine.models.gguf.checkpoint import GGUFCheckpoint
from engine.models.gguf.config import config_of
from engine.models.gguf.header import read_header
from engine.models.kv import BYTES
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.formats import PICKLES, is_gguf, refuse_pickle
from engine.models.loading.random_weights import RandomWeights
from engine.models.loading.stacked_experts import stacked
from engine.models.model import Model
from engine.models.parameters import all_parameters


def load(
    path: str | Path,
    dtype: str = "float32",
    config: ModelConfig | None = None,
    device: str = "cpu",
    activations: str = "auto",
) -> Model:
    """The model of a Hugging Face folder: config.json with *.safetensors beside it; or of a GGUF
    file.

    Checkpoints in float16, bfloat16, float32 or float64 become `dtype`. Weights are read one tensor
    at a time, so loading takes the model's memory and one tensor more. Raises BadInput naming the
    file and the field; nothing of the folder is ever executed. `config`: in place of the folder's,
    where more than its tensors is to be said. `device`: "cpu", or "cuda" for a GPU.
    `activations`: as `Model` takes them.
    """
    folder = Path(path)
    if folder.suffix in PICKLES:
        raise refuse_pickle(folder)
    if not folder.is_dir() and not is_gguf(folder):
        raise BadInput(f"{folder}: no such folder; give a Hugging Face model folder")
    own, source = opened(folder)
    require_memory(source.bytes(BYTES[dtype]), str(folder), device)
    return Model(config or own, source, dtype, device=device, activations=activations)


def config_at(path: Path) -> ModelConfig:
    """The config of a model folder or a GGUF file."""
    return config_of(read_header(path)) if is_gguf(path) else read_config(path)


def opened(path: Path) -> tuple[ModelConfig, Checkpoint | GGUFCheckpoint]:
    """The config and the weights of a model folder or a GGUF file."""
    if is_gguf(path):
        header = read_header(path)
        config = config_of(header)
        return config, GGUFCheckpoint(header, config)
    config = read_config(path)
    return config, Checkpoint(path, config)


def random_weights(config: ModelConfig, seed: int = 0, dtype: str = "float32") -> dict[str, Tensor]:
    """Untrained weights under their Hugging Face names."""
    return dict(RandomWeights(config, seed, dtype))


def random_model(
    config: ModelConfig,
    seed: int = 0,
    dtype: str = "float32",
    device: str = "cpu",
    activations: str = "auto",
) -> Model:
    """An untrained model: any public architecture without its weights."""
    require_memory(weight_bytes(config, dtype), config.architecture, device)
    source = RandomWeights(config, seed, dtype)
    return Model(config, source, dtype, device=device, activations=activations)


def save(path: str | Path, config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Write config.json and model.safetensors into a folder that transformers loads too."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise unwritten(folder, "the model", fault) from None
    names = [parameter.name for parameter in all_parameters(config)]
    dtype = str(weights[names[0]].dtype).removeprefix("torch.")
    raw = config.raw | {"dtype": dtype, "torch_dtype": dtype}
    tensors = {name: weights[name].detach().contiguous() for name in names}
    tensors = stacked(config, tensors)
    with written(folder / "model.safetensors", "the model", (SafetensorError,)) as part:
        save_file(tensors, part, metadata={"format": "pt"})
    write_text(folder / "config.json", json.dumps(raw, indent=2) + "\n", "the model's config")


def fits(needed: float) -> bool:
    """Whether this machine has `needed` bytes left, as far as it says."""
    try:
        require_memory(needed, "")
    except BadInput:
        return False
    return True


def require_memory(needed: float, what: str, device: str = "cpu") -> None:
    """Raises BadInput where `needed` bytes are more than the device has left (where it says), or
    where there is no such device."""
    advice = "take a smaller model or a narrower dtype, or the modelled executor"
    if device == "cpu":
        require(needed, what, advice)
        return
    if not torch.cuda.is_available():
        raise BadInput(
            "device cuda: torch sees no GPU on this machine; take device cpu, or a machine with "
            "an NVIDIA GPU and torch built for it"
        )
    free, _ = torch.cuda.mem_get_info()
    if needed > free:
        raise BadInput(
            f"{what}: takes {needed / GIB:,.1f} GiB and the GPU has {free / GIB:.1f} GiB left; "
            f"{advice}"
        )
