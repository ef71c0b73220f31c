"""A small model as a GGUF file: two layers, a tokenizer, matrices in blocks of several kinds."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.models.gguf.written import random_blocks, write

WORDS = ["<s>", "a", "b", "ab", "c", "\u0120"]
TOKENS = {
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": WORDS,
    "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1],
    "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.add_bos_token": True,
    "tokenizer.ggml.eos_token_id": 4, "tokenizer.chat_template": "{{ messages }}",
}  # fmt: skip
METADATA = {
    "block_count": 2, "embedding_length": 256, "feed_forward_length": 256,
    "attention.head_count": 4, "attention.head_count_kv": 2, "context_length": 64,
    "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10000.0,
}  # fmt: skip
KIND_OF = {"attn_q": "Q4_K", "attn_v": "Q6_K", "ffn_down": "Q6_K", "output": "Q6_K"}


def model(path: Path, kind: str = "llama", experts: int = 0, **more: Any) -> Path:
    """A file of two layers, its matrices in formats of their own; every other one Q4_0."""
    metadata = {"general.architecture": kind}
    metadata |= {f"{kind}.{key}": value for key, value in METADATA.items()} | TOKENS | more
    shapes = {
        "token_embd.weight": (6, 256),
        "output_norm.weight": (256,),
        "output.weight": (6, 256),
    }
    for layer in range(2):
        rows = {"attn_q": 256, "attn_k": 128, "attn_v": 128, "attn_output": 256, "ffn_gate": 256}
        rows |= {"ffn_up": 256, "ffn_down": 256}
        if experts:
            fed = [rows.pop(name) for name in ("ffn_gate", "ffn_up", "ffn_down")]
            for name, count in zip(("gate", "up", "down"), fed, strict=True):
                shapes[f"blk.{layer}.ffn_{name}_exps.weight"] = (experts, count, 256)
            shapes[f"blk.{layer}.ffn_gate_inp.weight"] = (experts, 256)
        shapes |= {f"blk.{layer}.{name}.weight": (count, 256) for name, count in rows.items()}
        norms = ("attn_q_norm", "attn_k_norm") if kind.startswith("qwen3") else ()
        shapes |= {f"blk.{layer}.{name}.weight": (64,) for name in norms}
        for name in ("attn_norm", "ffn_norm"):
            shapes[f"blk.{layer}.{name}.weight"] = (256,)
        if kind == "qwen2":
            for name in ("attn_q", "attn_k", "attn_v"):
                shapes[f"blk.{layer}.{name}.bias"] = (rows[name],)
    draw, tensors = np.random.default_rng(0), {}
    for number, (name, shape) in enumerate(shapes.items()):
        if len(shape) == 1:
            tensors[name] = ("F32", draw.normal(1, 0.1, shape).astype(np.float32))
            continue
        form = KIND_OF.get(name.split(".")[-2].removesuffix("_exps"), "Q4_0")
        if name.split(".")[-2] == "ffn_gate_inp":
            tensors[name] = ("F32", draw.normal(0, 1, shape).astype(np.float32))
        elif form in ("Q4_K", "Q6_K"):
            tensors[name] = (
                form,
                random_blocks(form, math.prod(shape[:-1]), 1, number).reshape(*shape[:-1], 1, -1),
            )
        else:
            weight = draw.normal(0, 0.1, shape).astype(np.float32)
            tensors[name] = (form, weight)
    write(path, metadata, tensors)
    return path
