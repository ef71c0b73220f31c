"""Memory of one rank of a served model: its share of the weights, and of a token's cache."""

from dataclasses import replace

from engine.core.errors import BadInput
from engine.inference.executors.costs.ranks import Ranks
from engine.models.config import ModelConfig
from engine.models.footprint import weight_bytes
from engine.models.kv import cache_spec


def rank_weights(config: ModelConfig, ranks: Ranks, dtype: str) -> float:
    """Bytes of weights on the fullest rank; embedding and head lie with the layers' shares."""
    shard = ranks.shard(config)
    if shard.experts is not None and ranks.data > 1:
        width = max(1, shard.experts.width // ranks.data)
        shard = replace(shard, experts=replace(shard.experts, width=width))
    return weight_bytes(shard, dtype) * ranks.layers(config)


def rank_state(config: ModelConfig, ranks: Ranks) -> float:
    """Bytes of a sequence's recurrent state. Raises BadInput where ranks would share it."""
    if ranks.count > 1 and any(config.recurrent):
        raise BadInput(
            f"{config.architecture}: layers with a recurrent state know no ranks; give it one"
        )
    return cache_spec(config).bytes_per_state()


def rank_cache(config: ModelConfig, ranks: Ranks, dtype: str) -> float:
    """Bytes that a token's keys and values take on one rank."""
    return cache_spec(ranks.shard(config), dtype).bytes_per_token() * ranks.layers(config)
