"""Small configs of every family, as Hugging Face spells them."""

from typing import Any

COMMON: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LINEAR = {"type": "linear", "factor": 2.0}
PROPORTIONAL = {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
# The same list twice: transformers takes the short one for a short sequence (see test_longrope).
LONGROPE = {
    "rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.5], "long_factor": [1.0, 2.5]},
    "original_max_position_embeddings": 32,
}
LATENT = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "num_key_value_heads": 4,
    "q_lora_rank": 12,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 20,
    "first_k_dense_replace": 1,
}
V3 = LATENT | {"architectures": ["DeepseekV3ForCausalLM"], "n_group": 4, "topk_group": 2}
V3 |= {"routed_scaling_factor": 2.5, "norm_topk_prob": True, "num_nextn_predict_layers": 0}
INDEX = {"index_n_heads": 6, "index_head_dim": 8, "index_topk": 7}
DEEP_YARN = YARN | {"mscale": 1.0, "mscale_all_dim": 0.7, "beta_fast": 32, "beta_slow": 1}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
QWEN_MOE = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
    "head_dim": 8,
    "decoder_sparse_step": 1,
}
DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 6,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 2,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [2, 1, 1],
    },
}
GEMMA_4 = {
    "architectures": ["Gemma4ForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_activation": "gelu_pytorch_tanh",
    "head_dim": 8,
    "global_head_dim": 12,
    "sliding_window": 9,
    "rope_parameters": {
        "full_attention": PROPORTIONAL,
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}
GEMMA_4_EXPERTS = {"enable_moe_block": True, "hidden_size_per_layer_input": 0, "num_experts": 6}
GEMMA_4_EXPERTS |= {"num_hidden_layers": 2, "top_k_experts": 2, "moe_intermediate_size": 20}
GEMMA_4_EXPERTS |= {"layer_types": ["sliding_attention", "full_attention"]}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama-2": {"architectures": ["LlamaForCausalLM"], "num_key_value_heads": 4},
    "llama-3": {"architectures": ["LlamaForCausalLM"], "rope_theta": 5e5, "rope_scaling": LLAMA3},
    "llama-tied-biased": {
        "architectures": ["LlamaForCausalLM"],
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": True,
        "head_dim": 12,
    },
    "llama-linear": {"architectures": ["LlamaForCausalLM"], "rope_scaling": LINEAR},
    "llama-dynamic": {
        "architectures": ["LlamaForCausalLM"],
        "max_position_embeddings": 32,
        "rope_scaling": {"type": "dynamic", "factor": 2.0},
    },
    "llama-yarn": {"architectures": ["LlamaForCausalLM"], "rope_scaling": YARN},
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": 10},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True},
    "qwen2-windows": {
        "architectures": ["Qwen2ForCausalLM"],
        "use_sliding_window": True,
        "sliding_window": 9,
        "max_window_layers": 1,
    },
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 12},
    "qwen3-yarn": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 8, "rope_scaling": YARN},
    "mixtral": {
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    "qwen3-moe": QWEN_MOE | {"architectures": ["Qwen3MoeForCausalLM"], "norm_topk_prob": True},
    "qwen3-moe-mixed": QWEN_MOE
    | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "mlp_only_layers": [1],
        "norm_topk_prob": False,
        "attention_bias": True,
        "use_sliding_window": True,
        "sliding_window": 11,
    },
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 32,
        "n_head": 4,
        "n_layer": 3,
        "n_positions": 128,
    },
    "gemma-2": {
        "architectures": ["Gemma2ForCausalLM"],
        "head_dim": 12,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 20,
        "sliding_window": 10,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0,
    },
    "gemma-3": {
        "architectures": ["Gemma3ForCausalLM"],
        "num_hidden_layers": 4,
        "head_dim": 12,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 20,
        "sliding_window": 10,
        "sliding_window_pattern": 2,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "olmo-2": {"architectures": ["Olmo2ForCausalLM"]},
    "olmo-3": {
        "architectures": ["Olmo3ForCausalLM"],
        "num_hidden_layers": 4,
        "sliding_window": 9,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0},
            "full_attention": YARN | {"rope_theta": 500000.0},
        },
    },
    "exaone-4": {
        "architectures": ["Exaone4ForCausalLM"],
        "num_hidden_layers": 4,
        "sliding_window": 9,
        "sliding_window_pattern": 4,
        "rope_theta": 1000000.0,
        "rope_scaling": LLAMA3 | {"factor": 16.0},
    },
    "exaone-4-global": {"architectures": ["Exaone4ForCausalLM"]}
    | {"sliding_window": None, "layer_types": ["full_attention"] * 3},
    "phi-3": {"architectures": ["Phi3ForCausalLM"], "sliding_window": 11},
    "phi-4-part": {
        "architectures": ["Phi3ForCausalLM"],
        "partial_rotary_factor": 0.5,
        "sliding_window": None,
        "tie_word_embeddings": True,
    },
    "phi-4-mini": LONGROPE | {"architectures": ["Phi3ForCausalLM"], "partial_rotary_factor": 0.5},
    "granite": {
        "architectures": ["GraniteForCausalLM"],
        "attention_bias": True,
        "embedding_multiplier": 2.0,
        "residual_multiplier": 1.3,
        "attention_multiplier": 0.25,
        "logits_scaling": 0.5,
        "tie_word_embeddings": False,
    },
    "smollm3": {"architectures": ["SmolLM3ForCausalLM"], "no_rope_layer_interval": 3}
    | {"rope_theta": 5000000.0, "tie_word_embeddings": True},
    "glm-4-moe": {
        "architectures": ["Glm4MoeForCausalLM"],
        "head_dim": 12,
        "attention_bias": True,
        "use_qk_norm": True,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 20,
        "first_k_dense_replace": 1,
        "n_group": 2,
        "topk_group": 1,
        "routed_scaling_factor": 2.5,
        "partial_rotary_factor": 0.5,
    },
    "minimax-m2": {
        "architectures": ["MiniMaxM2ForCausalLM"],
        "num_local_experts": 6,
        "num_experts_per_tok": 2,
        "head_dim": 12,
        "rotary_dim": 6,
    },
    "gpt-oss": {
        "architectures": ["GptOssForCausalLM"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "head_dim": 12,
        "sliding_window": 9,
        "swiglu_limit": 1.0,
        "rope_scaling": YARN | {"truncate": False},
    },
    "qwen3-next": DELTA
    | QWEN_MOE
    | {
        "architectures": ["Qwen3NextForCausalLM"],
        "norm_topk_prob": True,
        "shared_expert_intermediate_size": 20,
        "mlp_only_layers": [1],
    },
    "qwen3.5": DELTA
    | {
        "architectures": ["Qwen3_5ForCausalLM"],
        "head_dim": 16,
        "linear_num_value_heads": 2,
        "layer_types": ["full_attention", "linear_attention", "linear_attention"],
    },
    "qwen3.5-moe": DELTA
    | QWEN_MOE
    | {"architectures": ["Qwen3_5MoeForCausalLM"], "shared_expert_intermediate_size": 20},
    "nemotron-h": {
        "architectures": ["NemotronHForCausalLM"],
        "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
        "layer_norm_epsilon": 1e-5,
        "head_dim": 12,
        "mamba_num_heads": 4,
        "mamba_head_dim": 8,
        "ssm_state_size": 6,
        "n_groups": 2,
        "n_routed_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 20,
        "moe_shared_expert_intermediate_size": 24,
        "moe_latent_size": 16,
        "routed_scaling_factor": 2.5,
    },
    "gemma-4": GEMMA_4
    | {
        "layer_types": [*("sliding_attention", "full_attention") * 2],
        "num_kv_shared_layers": 2,
        "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": 97,
        "final_logit_softcapping": 5.0,
    },
    "gemma-4-moe": GEMMA_4 | GEMMA_4_EXPERTS,
    "gemma-4-wide": GEMMA_4
    | {
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "attention_k_eq_v": True,
        "num_global_key_value_heads": 1,
        "hidden_size_per_layer_input": 0,
    },
    "deepseek-v2-lite": LATENT | {"q_lora_rank": None, "topk_method": "greedy"},
    "deepseek-v2": LATENT
    | {
        "topk_method": "group_limited_greedy",
        "n_group": 4,
        "topk_group": 2,
        "routed_scaling_factor": 16.0,
        "attention_bias": True,
        "rope_scaling": DEEP_YARN,
    },
    "deepseek-v3": V3 | {"rope_scaling": DEEP_YARN | {"mscale_all_dim": 1.0}},
    "deepseek-v3.2": V3 | INDEX | {"architectures": ["DeepseekV32ForCausalLM"]},
    "glm-5": V3
    | INDEX
    | {"architectures": ["GlmMoeDsaForCausalLM"], "n_group": 1, "topk_group": 1},
    "deepseek-v3-halves": V3 | {"rope_interleave": False, "q_lora_rank": None},
}
