"""A layer of LLaDA by the names that its checkpoints have."""

from engine.models.config import ModelConfig
from engine.models.tensors.parameter import Parameter, linear, one


def llada_layer(config: ModelConfig, root: str) -> list[Parameter]:
    """Attention and a gated feed-forward, each behind a norm."""
    hidden, width, bias = config.hidden, config.width, config.qkv_bias
    rows, kv_rows = config.heads * config.head_dim, config.kv_heads * config.head_dim
    found = [one(f"{root}.attn_norm.weight", "attention_norm", hidden)]
    for name, role, count in (("q", "query", rows), ("k", "key", kv_rows), ("v", "value", kv_rows)):
        found += linear(f"{root}.{name}_proj", role, count, hidden, bias)
    found += linear(f"{root}.attn_out", "out", hidden, rows, False)
    found += [one(f"{root}.ff_norm.weight", "mlp_norm", hidden)]
    found += linear(f"{root}.ff_proj", "gate", width, hidden, False)
    found += linear(f"{root}.up_proj", "up", width, hidden, False)
    return found + linear(f"{root}.ff_out", "down", hidden, width, False)
