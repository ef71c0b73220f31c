"""Weight files by their names: which are GGUF, which are pickles and never read."""

from pathlib import Path

from engine.core.errors import BadInput

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def is_gguf(path: Path) -> bool:
    """Whether that is a GGUF file by its name."""
    return path.suffix == ".gguf" and path.is_file()


def refuse_pickle(path: Path) -> BadInput:
    """The error for weights that can run code when they are opened."""
    return BadInput(
        f"{path}: pickled weights can run code when opened and are never read; convert them where "
        "you trust them (transformers: from_pretrained(...).save_pretrained(folder)) and give the "
        "folder with *.safetensors"
    )
