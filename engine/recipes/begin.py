"""The weights that training begins with where a model goes on from another one.

It says what the other says: words and paths that the other did not have come after its own, with
fresh embeddings.
"""

from torch import Tensor

from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.training.losses.language import fresh_weights

Weights = dict[str, Tensor]


def going_on(config: ModelConfig, seed: int, other: Weights) -> Weights:
    """Weights of `config`: the other's where it has any, fresh ones beyond.

    Raises BadInput where the two differ in more than words and paths.
    """
    found = {}
    for name, fresh in fresh_weights(config, seed).items():
        old = other.get(name)
        if old is None and ".path_" not in name:
            raise BadInput(f"going on from another model: it has no {name}")
        if old is not None:
            if old.shape[1:] != fresh.shape[1:] or len(old) > len(fresh):
                raise BadInput(
                    f"going on from another model: {name} has shape {list(old.shape)}, "
                    f"not {list(fresh.shape)}"
                )
            fresh = fresh.clone()
            fresh[: len(old)] = old
        found[name] = fresh
    return found
