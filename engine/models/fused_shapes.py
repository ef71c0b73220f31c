"""Fused decoders: families whose whole pass on a processor is one call of a compiled kernel.

Told by the config alone, so that a model of the machine counts what the engine does without loading
what does it.
"""

from engine.models.config import ModelConfig

DTYPES = ("float32", "bfloat16")  # of weights that are no codes
AT_ONCE = 4  # rows that a product takes by each number of a weight it has read


def taken(rows: int) -> int:
    """Rows as a product takes them: one, two, or whole fours (engine.kernels.matmul.panels_cpu)."""
    return rows if rows <= 2 else -(-rows // AT_ONCE) * AT_ONCE


def in_one_call(config: ModelConfig) -> bool:
    """Whether the fused step knows this architecture: Llama, Mistral, Qwen2, Qwen3, their like."""
    plain_rotary = (
        config.rotary is not None
        and config.rotary.kind != "dynamic"
        and not config.rotary.interleaved
        and config.rotary.dim == config.head_dim
        and config.head_dim % 2 == 0
    )
    same_scale = not config.scale_by_layer
    llama_like = (
        config.norm == "rms"
        and config.gated
        and config.activation == "silu"
        and not config.sandwich
        and config.norm_offset == 0.0
        and config.embedding_scale == 1.0
        and config.logit_softcap == 0.0
        and config.unusual in ("", "projections stored as one")
        and not (config.out_bias or config.mlp_bias)
    )
    dense = config.latent is None and config.experts is None and not any(config.expert_layers)
    return plain_rotary and same_scale and llama_like and dense
