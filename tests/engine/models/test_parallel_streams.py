"""Parallel streams: over pages as without a cache, one without a prefix as none, shares as said."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.inference.executors.costs.forward_work import ForwardWork
from engine.inference.policies.streams import AsTrained, Parallel
from engine.models.batch import pack
from engine.models.config import Streams
from engine.models.families import parse
from engine.models.kv import PagedKV
from engine.models.loading.load import random_weights
from engine.models.model import Model
from engine.models.parallel_streams import shares
from engine.models.reference import dense
from tests.engine.models.small import raw

THREE = {"parscale_n": 3, "parscale_n_tokens": 8, "parscale_attn_smooth": 0.1}
IDS = torch.arange(40).view(2, 20) % 31


def config(name="llama-3", **more):
    return parse(raw(name) | more)


def telling(shape):
    """Weights whose prefixes and mixing are as large as anything."""
    weights = random_weights(shape, 0)
    for name, weight in weights.items():
        if "prefix" in name or "aggregate" in name:
            weights[name] = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    return weights


def paged(model):
    """Logits of every token of both texts, the first of which comes in two steps."""
    kv = PagedKV(model.spec, 9, 4)
    pages = [[3, 1, 5, 0], [2, 4, 7, 6]]
    ids = IDS[:, :16]
    first = pack([ids[0, :7].tolist(), ids[1].tolist()], [0, 0], pages, 4)
    first.logits_at_R = np.arange(23, dtype=np.int32)
    begun = model.forward(first, kv)
    rest = pack([ids[0, 7:].tolist()], [7], pages[:1], 4)
    rest.logits_at_R = np.arange(9, dtype=np.int32)
    return torch.cat([begun[:7], model.forward(rest, kv)]), begun[7:]


@pytest.mark.parametrize("name", ["llama-3", "qwen2"])
@pytest.mark.parametrize("plain", [True, False])
def test_streams_over_pages_are_passes_beside_one_another(name, plain):
    shape = config(name, **THREE)
    weights = telling(shape)
    said = dense(shape, weights, IDS[:, :16])
    for ours, right in zip(paged(Model(shape, weights, plain=plain)), said, strict=True):
        torch.testing.assert_close(ours, right, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("fault", ["one_prefix", "one_cache", "uniform", "undiscounted", "summed"])
def test_every_fault_says_something_else(fault):
    shape = config(**THREE)
    weights = telling(shape)
    wrong = replace(shape, streams=replace(shape.streams, fault=fault))
    assert not torch.allclose(paged(Model(shape, weights))[1], paged(Model(wrong, weights))[1])


def test_one_stream_without_a_prefix_is_none_bit_for_bit():
    shape = config()
    one, weights = replace(shape, streams=Streams(1, 0)), random_weights(shape, 0)
    assert torch.equal(dense(one, weights, IDS), dense(shape, weights, IDS))
    ours, plain = (paged(Model(each, weights, "float16")) for each in (one, shape))
    assert all(torch.equal(a, b) for a, b in zip(ours, plain, strict=True))


def test_shares_sum_to_one_and_none_is_below_the_smoothing():
    shape = config(**THREE)
    weights = telling(shape)
    roles = {"mix_in": "0.weight", "mix_in.bias": "0.bias", "mix_out": "2.weight",
             "mix_out.bias": "2.bias"}  # fmt: skip
    held = {role: weights[f"model.aggregate_layer.{name}"] for role, name in roles.items()}
    share_PB = shares(shape.streams, held, 9 * torch.randn(3, 50, shape.hidden))[..., 0]
    torch.testing.assert_close(share_PB.sum(0), torch.ones(50))
    assert float(share_PB.min()) >= 0.1 / 3 - 1e-7 and float(share_PB.max()) > 0.9


def test_a_step_is_counted_once_for_each_stream_and_its_logits_once():
    plain, three = ForwardWork(config(), "float32"), ForwardWork(config(**THREE), "float32")
    new_B, context_B = np.array([1, 5]), np.array([9, 5])
    once, thrice = plain.shape(new_B, context_B, 2), three.shape(new_B, context_B, 2)
    assert (thrice.tokens, thrice.rows, thrice.sequences) == (3 * once.tokens, 2, 6)
    assert thrice.touched == 3 * (once.touched + 2 * 8 * plain.config.layers)


def test_what_does_not_fit_is_one_line():
    shape = config(**THREE)
    with pytest.raises(BadInput, match="prefixes have 8 tokens"):
        PagedKV(Model(shape, random_weights(shape, 0)).spec, 4, 16)
    with pytest.raises(BadInput, match="parscale_attn_smooth"):
        config(**(THREE | {"parscale_attn_smooth": 1.5}))
    with pytest.raises(BadInput, match="parscale_n. is 3"):
        config("qwen2", **THREE, use_sliding_window=True, sliding_window=4, max_window_layers=0)


def test_a_checkpoint_has_the_streams_it_is_trained_for():
    plain, three = config(), config(**THREE)
    assert Parallel(count=3, prefix=8).of(plain, trained=False).streams == Streams(3, 8)
    assert Parallel(count=3, prefix=8).of(three, trained=True).streams == Streams(3, 8)
    assert AsTrained().of(three, trained=True) == three
    for count, prefix in ((3, 8), (1, 8), (2, 0)):
        with pytest.raises(BadInput, match="not trained for"):
            Parallel(count=count, prefix=prefix).of(plain, trained=True)
    with pytest.raises(BadInput, match="fit none of them"):
        Parallel().of(config(thinking_paths=2), trained=False)
