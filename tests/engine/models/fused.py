"""Configs, weights, caches and texts that the fused step is tried with."""

from dataclasses import replace

import numpy as np
import torch

from engine.models.batch import Batch
from engine.models.config import ModelConfig, Rotary
from engine.models.kv import PagedKV, cache_spec
from engine.models.parameters import all_parameters

SIZE = 16  # tokens of a page

LLAMA = ModelConfig(
    architecture="LlamaForCausalLM", family="llama", vocab=96, hidden=48, layers=2, heads=4,
    kv_heads=2, head_dim=16, width=80, max_positions=512, norm_eps=1e-5, attention_scale=0.25,
    windows=(0, 0), expert_layers=(False, False), rotary=Rotary(16),
)  # fmt: skip
STRETCHED = Rotary(16, kind="llama3", factor=4.0, original_positions=32)
CONFIGS = {
    "llama": LLAMA,
    "llama 3 rotary, tied": replace(LLAMA, rotary=STRETCHED, tied=True),
    "qwen 2": replace(LLAMA, qkv_bias=True, family="qwen2"),
    "qwen 3": replace(LLAMA, qk_norm=True, family="qwen3"),
    "sliding window": replace(LLAMA, windows=(7, 0), family="mistral"),
    "nothing divides": replace(
        LLAMA, vocab=103, hidden=37, heads=6, kv_heads=3, head_dim=10, width=53, rotary=Rotary(10),
        qk_norm=True, qkv_bias=True, windows=(0, 11),
    ),
    "one of everything": replace(
        LLAMA, vocab=1, hidden=1, layers=1, heads=1, kv_heads=1, head_dim=2, width=1,
        rotary=Rotary(2), windows=(0,), expert_layers=(False,),
    ),
}  # fmt: skip


def random_weights(config, dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    return {
        p.name: (torch.randn(p.shape, generator=draw) * 0.3).to(dtype)
        for p in all_parameters(config)
    }


def memory(config, pages=200, dtype="float32"):
    kv = PagedKV(cache_spec(config, dtype), pages, SIZE)
    for tensors in kv.tensors:
        for pages_of in tensors.values():
            pages_of.fill_(float("nan"))  # what was never written must never be read
    return kv


def places(rows, each=5):
    """Pages of each sequence, dealt out of order."""
    order = np.random.default_rng(0).permutation(rows * each)
    return [order[row::rows].tolist() for row in range(rows)]


def everywhere(batch: Batch) -> Batch:
    return replace(batch, logits_at_R=np.arange(len(batch.tokens_T), dtype=np.int32))


def texts(config, lengths):
    draw = torch.Generator().manual_seed(1)
    return [
        torch.randint(0, config.vocab, (length,), generator=draw).tolist() for length in lengths
    ]
