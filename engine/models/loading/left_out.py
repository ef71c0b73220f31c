"""Tensors of a checkpoint that its config does not ask for, though they would change the model.

Many files hold more than is read: a vision tower, layers that predict further tokens, frequencies,
scales. A layer beyond the config's, a bias beside a weight that is read, and a head of its own
where the config says there is none show that config.json is of another model.
"""

import re
from collections.abc import Mapping
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import open_regular
from engine.models.config import ModelConfig
from engine.models.loading.safetensors_file import FLOATS, Stored

LAYER = re.compile(r"^(.*?\.?(?:layers|h|blocks)\.)(\d{1,9})\.")
FURTHER = ("num_nextn_predict_layers", "num_mtp_modules")  # layers that predict further tokens
HEAD, TABLE = "lm_head.weight", "embed_tokens.weight"
PIECE = 1 << 20  # bytes compared at once


def check_left_out(
    held: Mapping[str, Stored],
    read: Mapping[str, Stored | None],
    config: ModelConfig,
    raw: Mapping[str, Any],
) -> None:
    """`read`: tensors of the file that the model takes, by their names there, None where they are
    codes and scales. Raises BadInput naming one that it would leave out and that matters."""
    roots = {found[1] for name in read if (found := LAYER.match(name))}
    inner = raw.get("text_config")
    said = {**raw, **(inner if isinstance(inner, dict) else {})}
    further = any(said.get(field) for field in FURTHER)
    own, table = held.get(HEAD), next((t for n, t in read.items() if n.endswith(TABLE)), None)
    if config.tied and own and table and not _equal(own, table):
        raise BadInput(
            f"{own.path}: tensor {HEAD!r} differs from {table.name!r}, and config.json says that "
            "they are one (tie_word_embeddings): restore it"
        )
    for name, tensor in held.items():
        if name in read or tensor.bytes == 0:
            continue
        layer = LAYER.match(name)
        if layer and layer[1] in roots and int(layer[2]) >= config.layers and not further:
            raise BadInput(
                f"{tensor.path}: tensor {name[:120]!r} is of layer {int(layer[2])}; config.json "
                f"has {config.layers} layers, counted from 0: restore it"
            )
        if name.endswith(".bias") and f"{name[:-4]}weight" in read and _is_something(tensor):
            raise BadInput(
                f"{tensor.path}: tensor {name[:120]!r} is added to what is read, and config.json "
                f"says there is none ({config.architecture}): restore it"
            )


def _equal(one: Stored, other: Stored) -> bool:
    """Whether two tensors are the same bytes; of two types nothing is said."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return one.shape == other.shape
    with open_regular(one.path) as first, open_regular(other.path) as second:
        first.seek(one.start)
        second.seek(other.start)
        sizes = (min(PIECE, one.bytes - at) for at in range(0, one.bytes, PIECE))
        return all(first.read(size) == second.read(size) for size in sizes)


def _is_something(tensor: Stored) -> bool:
    """Whether any of it is not 0, as biases are that some quantisers write."""
    return tensor.dtype in FLOATS and bool(tensor.read().any())
