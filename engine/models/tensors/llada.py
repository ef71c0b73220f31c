"""A layer of LLaDA by the names that its checkpoints have."""

from engine.models.tensors.parameter import Parameter, linear, one


def llada_layer(
    root: str, hidden: int, rows: int, kv_rows: int, width: int, bias: bool
) -> list[Parameter]:
    """Attention and a gated feed-forward, each behind a norm. `rows`: of all heads of queries;
    `width`: of the feed-forward; `bias`: of queries, keys and values."""
    found = [one(f"{root}.attn_norm.weight", "attention_norm", hidden)]
    for name, role, count in (("q", "query", rows), ("k", "key", kv_rows), ("v", "value", kv_rows)):
        found += linear(f"{root}.{name}_proj", role, count, hidden, bias)
    found += linear(f"{root}.attn_out", "out", hidden, rows, False)
    found += [one(f"{root}.ff_norm.weight", "mlp_norm", hidden)]
    found += linear(f"{root}.ff_proj", "gate", width, hidden, False)
    found += linear(f"{root}.up_proj", "up", width, hidden, False)
    return found + linear(f"{root}.ff_out", "down", hidden, width, False)
