from dataclasses import replace

import numba
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.models.batch import Batch, pack
from engine.models.config import Rotary
from engine.models.families import parse
from engine.models.fused_step import Fused, fits
from engine.models.kv import PagedKV, cache_spec, in_fp8
from engine.models.model import Model
from engine.models.reference import dense
from tests.engine.models.fused import (
    CONFIGS,
    LLAMA,
    SIZE,
    everywhere,
    memory,
    places,
    random_weights,
    texts,
)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_equal_the_reference_in_prefill_and_in_decode(name, dtype):
    config = CONFIGS[name]
    weights = random_weights(config, dtype)
    wide = {key: value.float() for key, value in weights.items()}
    fused, kv = Fused(config, weights), memory(config)
    tokens, pages = texts(config, [40, 1, 17]), places(3)
    expected = [dense(config, wide, torch.tensor([text]))[0] for text in tokens]
    found = fused.forward(everywhere(pack(tokens, [0, 0, 0], pages, SIZE)), kv)
    torch.testing.assert_close(found, torch.cat(expected), rtol=1e-4, atol=1e-4)
    kv = memory(config)
    for at, token in enumerate(tokens[0]):
        found = fused.forward(pack([[token]], [at], pages[:1], SIZE), kv)
        torch.testing.assert_close(found[0], expected[0][at], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["llama", "nothing divides"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sequence_has_the_same_bits_alone_in_any_batch_and_in_any_chunk(name, threads, full):
    config, rows = CONFIGS[name], 32
    fused, pages = Fused(config, random_weights(config)), places(rows)
    tokens = texts(config, [3 + 2 * row for row in range(rows)])
    numba.set_num_threads(threads)
    try:
        alone = [
            fused.forward(pack([text], [0], [held], SIZE), memory(config))[0]
            for text, held in zip(tokens, pages, strict=True)
        ]
        for size in range(2, rows + 1) if full else (2, 3, 7, 32):
            batch = pack(tokens[:size], [0] * size, pages[:size], SIZE)
            found = fused.forward(batch, memory(config))
            assert torch.equal(found, torch.stack(alone[:size]))
        for chunk in (1, 5, 16):
            kv, text = memory(config), tokens[20]
            for at in range(0, len(text), chunk):
                part = text[at : at + chunk]
                found = fused.forward(pack([part], [at], [pages[20]], SIZE), kv)
            assert torch.equal(found[0], alone[20])
    finally:
        numba.set_num_threads(1)


def test_prefill_and_decode_share_a_step():
    config = CONFIGS["qwen 3"]
    weights = random_weights(config)
    fused, kv, pages = Fused(config, weights), memory(config), places(3)
    tokens = texts(config, [30, 20, 9])
    fused.forward(pack([tokens[0][:29], tokens[1][:8]], [0, 0], pages[:2], SIZE), kv)
    chunks = [tokens[0][29:], tokens[1][8:], tokens[2]]
    found = fused.forward(pack(chunks, [29, 8, 0], pages, SIZE), kv)
    expected = [dense(config, weights, torch.tensor([text]))[0, -1] for text in tokens]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_a_half_precision_cache_rounds_keys_and_values_only():
    config = CONFIGS["llama"]
    weights = random_weights(config, torch.bfloat16)
    fused, kv = Fused(config, weights), memory(config, dtype="bfloat16")
    [text] = texts(config, [50])
    found = fused.forward(pack([text], [0], places(1), SIZE), kv)
    wide = {key: value.float() for key, value in weights.items()}
    expected = dense(config, wide, torch.tensor([text]))[:, -1]
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)


def test_a_cache_in_eight_bits_rounds_keys_and_values_only():
    config = CONFIGS["llama"]
    weights = random_weights(config)
    spec = in_fp8(cache_spec(config), config)
    found = []
    for model in (Fused(config, weights), Model(config, weights, plain=True)):
        kv = PagedKV(spec, 8, SIZE)
        assert kv.bytes() * 4 == memory(config, pages=8).bytes()
        [text] = texts(config, [50])
        found.append(model.forward(pack([text], [0], places(1), SIZE), kv))
    expected = dense(config, weights, torch.tensor([text]))[:, -1]
    for logits in found:
        torch.testing.assert_close(logits, expected, rtol=0.2, atol=0.2)
        assert not torch.allclose(logits, expected, rtol=1e-4, atol=1e-4), "nothing was rounded"
    torch.testing.assert_close(found[0], found[1], rtol=0.02, atol=0.02)


def test_a_batch_may_be_empty_or_want_no_logits():
    config = CONFIGS["llama"]
    fused, kv = Fused(config, random_weights(config)), memory(config)
    none = np.zeros(0, np.int32)
    table = np.zeros((0, 1), np.int32)
    empty = Batch(none, none, none, np.zeros(1, np.int32), none, table, none)
    assert fused.forward(empty, kv).shape == (0, config.vocab)
    silent = replace(pack([[1, 2, 3]], [0], places(1), SIZE), logits_at_R=none)
    assert fused.forward(silent, kv).shape == (0, config.vocab)


def test_logits_outlive_the_next_step():
    config = CONFIGS["llama"]
    fused, kv, pages = Fused(config, random_weights(config)), memory(config), places(1)
    first = fused.forward(pack([[5]], [0], pages, SIZE), kv)
    kept = first.clone()
    fused.forward(pack([[6]], [1], pages, SIZE), kv)
    assert torch.equal(first, kept)


def test_greedy_tokens_equal_those_of_transformers():
    raw = LlamaConfig(
        vocab_size=131, hidden_size=48, intermediate_size=96, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = LlamaForCausalLM(raw).eval()
    for parameter in theirs.parameters():
        parameter.data.normal_(0, 0.3)
    config = parse(raw.to_dict() | {"architectures": ["LlamaForCausalLM"]}, "test")
    ours, kv, pages = Fused(config, theirs.state_dict()), memory(config), places(1, each=6)
    [text] = texts(config, [11])
    asked = torch.tensor([text])
    with torch.no_grad():
        expected = theirs.generate(
            asked, max_new_tokens=64, do_sample=False, eos_token_id=-1, pad_token_id=0
        )[0].tolist()
    done = 0
    while len(text) < len(expected):
        logits = ours.forward(pack([text[done:]], [done], pages, SIZE), kv)
        done = len(text)
        text = [*text, int(logits.argmax())]
    assert text == expected


@pytest.mark.parametrize(
    "change",
    [
        {"rotary": None},
        {"rotary": Rotary(16, kind="dynamic")},
        {"rotary": Rotary(16, interleaved=True)},
        {"norm": "layer"},
        {"gated": False},
        {"activation": "gelu"},
        {"sandwich": True},
        {"norm_offset": 1.0},
        {"embedding_scale": 2.0},
        {"logit_softcap": 30.0},
        {"out_bias": True},
        {"mlp_bias": True},
        {"expert_layers": (False, True)},
        {"scale_by_layer": True},
    ],
)
def test_what_the_step_does_not_know_does_not_fit(change):
    assert fits(LLAMA, torch.float32) and fits(LLAMA, torch.bfloat16)
    assert not fits(replace(LLAMA, **change), torch.float32)
    assert not fits(LLAMA, torch.float16)
