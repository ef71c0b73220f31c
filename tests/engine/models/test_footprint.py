"""Weights and work counted from the config alone, against brute force and against transformers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.models.footprint import (
    active_parameter_count,
    parameter_count,
    step_work,
    visible_pairs,
    weight_bytes,
)
from engine.models.kv import PagedKV, cache_spec
from engine.models.loading.find import find, public
from engine.models.loading.random_weights import RandomWeights
from tests.engine.models import small

transformers = pytest.importorskip("transformers")
BUFFERS = ("correction_bias", "layer_scalar")  # of the checkpoint, no parameters of theirs


def work(config, new, context, **options):
    return {op.name: op for op in step_work(config, new, context, **options)}


@pytest.mark.parametrize("name", list(small.FAMILIES))
def test_counted_parameters_are_those_a_checkpoint_holds(name: str) -> None:
    config = small.config(name)
    tensors = dict(RandomWeights(config)).values()
    assert parameter_count(config) == sum(tensor.numel() for tensor in tensors)
    assert weight_bytes(config, "bfloat16") == 2 * parameter_count(config)


@pytest.mark.parametrize("name", list(public()))
def test_public_architectures_have_as_many_parameters_as_transformers_makes(name: str) -> None:
    config = find(name).config
    theirs = transformers.AutoConfig.for_model(config.family, **_clean(config.raw))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(theirs)
    held = {id(tensor): tensor.numel() for tensor in model.parameters()}
    buffers = sum(b.numel() for n, b in model.named_buffers() if n.endswith(BUFFERS))
    assert parameter_count(config) == sum(held.values()) + buffers


def _clean(raw: dict) -> dict:
    kept = {key: value for key, value in raw.items() if key not in ("model_type", "architectures")}
    zero_means_none = ("q_lora_rank", "sliding_window")
    return {k: None if k in zero_means_none and v == 0 else v for k, v in kept.items()}


@pytest.mark.parametrize("name", list(small.FAMILIES))
def test_cache_bytes_per_token_are_what_the_pages_take(name: str) -> None:
    config = small.config(name)
    for dtype in ("float32", "bfloat16"):
        kv = PagedKV(cache_spec(config, dtype), pages=3, page_size=5)
        held = sum(t.numel() * t.element_size() for layer in kv.tensors for t in layer.values())
        assert kv.bytes() == held


def test_known_caches_have_their_known_size() -> None:
    assert cache_spec(find("llama-3.1-8b").config, "bfloat16").bytes_per_token() == 131_072
    assert cache_spec(find("deepseek-v3").config, "bfloat16").bytes_per_token() == 70_272


@given(
    new=st.integers(1, 20),
    before=st.integers(0, 30),
    window=st.integers(0, 25),
)
def test_visible_pairs_equal_counting_them(new: int, before: int, window: int) -> None:
    context = before + new
    seen = [at + 1 if not window else min(at + 1, window) for at in range(before, context)]
    assert visible_pairs(np.array([new]), np.array([context]), window)[0] == sum(seen)


def test_dense_products_cost_two_flops_for_each_weight_and_token() -> None:
    config = small.config("llama-3")
    ops = work(config, [5, 1], [5, 30])
    products = sum(ops[name].flops for name in ("qkv", "out", "mlp"))
    matrices = parameter_count(config) - 2 * 97 * 32 - 7 * 32
    assert products == 2 * 6 * matrices
    assert ops["head"].flops == 2 * 2 * 97 * 32
    assert ops["attention"].flops == 4 * 3 * 4 * 8 * (5 * 6 // 2 + 30)
    assert sum(op.weight_bytes for op in ops.values()) == 4 * (
        parameter_count(config) - 97 * 32 + 6 * 32
    )


def test_a_window_bounds_what_is_read_and_computed() -> None:
    wide, narrow = small.config("llama-3"), small.config("mistral")
    far = work(narrow, [1], [100])["attention"], work(wide, [1], [100])["attention"]
    assert far[0].flops * 10 == far[1].flops
    assert far[0].cache_bytes < far[1].cache_bytes / 5


def test_few_tokens_read_few_experts_and_many_read_all() -> None:
    config = small.config("qwen3-moe")
    one = work(config, [1], [10])["experts"]
    many = work(config, [200], [200])["experts"]
    routed = 3 * 6 * 3 * 20 * 32
    assert one.weight_bytes == pytest.approx(4 * routed * 2 / 6)
    assert many.weight_bytes == pytest.approx(4 * routed)
    assert many.flops == pytest.approx(200 * one.flops)
    assert active_parameter_count(config) == parameter_count(config) - routed * 4 // 6


def test_latent_attention_reads_the_latent_and_not_the_heads() -> None:
    config = find("deepseek-v3").config
    attention = work(config, [1], [1000], dtype="bfloat16")["attention"]
    assert attention.cache_bytes == 1001 * 70_272
    assert attention.flops == 2 * 61 * 128 * (576 + 512) * 1000
