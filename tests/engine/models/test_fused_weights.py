"""Weights of the fused step: matrices in codes of their own formats, packed a layer at a time."""

import weakref
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch

from engine.core.errors import BadInput
from engine.inference.executors.tensors.real_executor import executor_for
from engine.kernels.quantised.weight import round_to_nearest
from engine.models.batch import pack
from engine.models.config import Rotary
from engine.models.fused_step import Fused, fits
from engine.models.model import Model
from engine.models.reference import dense
from tests.engine.inference.small import config as settings
from tests.engine.models.fused import (
    LLAMA,
    SIZE,
    everywhere,
    memory,
    places,
    random_weights,
    texts,
)


class Coded(dict):
    """Weights whose matrices are codes too, each in its own format; the embedding is plain."""

    FORMATS = ("int4", 32, True), ("int8", 64, False), ("int6", 16, False), ("e4m3", 0, False)

    def __init__(self, weights):
        super().__init__(weights)
        self.held = {}
        for number, (name, weight) in enumerate(weights.items()):
            if weight.ndim == 2 and "embed" not in name:
                self.held[name] = round_to_nearest(weight, *self.FORMATS[number % 4])
                self[name] = self.held[name].dequantised()
        self.codes, self.holds_codes = self.held.get, True


CODED = replace(LLAMA, vocab=70, hidden=96, width=160, head_dim=16, kv_heads=1, heads=2)


def test_matrices_in_codes_of_their_own_formats_give_the_reference_s_logits_in_any_batch():
    config = replace(CODED, qkv_bias=True)
    assert fits(config, torch.float32, in_codes=True)
    weights = Coded(random_weights(config))
    fused, pages = Fused(config, weights, weights.codes), places(9)
    tokens = texts(config, [40, 1, 17, 2, 3, 5, 4, 9, 8])
    expected = torch.cat([dense(config, weights, torch.tensor([t]))[0] for t in tokens])
    batch = everywhere(pack(tokens, [0] * 9, pages, SIZE))
    found = fused.forward(batch, memory(config))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    kv = memory(config)
    for at, token in enumerate(tokens[0]):
        alone = fused.forward(pack([[token]], [at], pages[:1], SIZE), kv)
        assert torch.equal(alone[0], found[at])
    plain = sum(w.numel() * 4 for name, w in weights.items() if name in weights.held)
    assert fused.bytes < 0.6 * plain
    assert not fits(replace(config, hidden=48), torch.float32, in_codes=True)
    assert not fits(replace(config, head_dim=8, rotary=Rotary(8)), torch.float32, in_codes=True)


def test_activations_in_eight_bits_give_a_token_the_same_logits_alone_and_in_any_batch():
    config = replace(CODED, qkv_bias=True)
    weights, tokens = Coded(random_weights(config)), texts(config, [11, 1, 17, 2, 3])
    batch = everywhere(pack(tokens, [0] * 5, places(5), SIZE))
    floats = Fused(config, weights, weights.codes).forward(batch, memory(config))
    model = Model(config, weights, activations="int8")
    said = "int8 with 6 weights of int4, 2 weights of int8; float32 with 7 weights of int6"
    header = executor_for(settings(), model, "coded").facts.header()
    assert header["activations"] == said
    found = model.forward(batch, memory(config))
    torch.testing.assert_close(found, floats, rtol=0, atol=0.03 * float(floats.abs().max()))
    assert not torch.equal(found, floats)
    kv = memory(config)
    for at, token in enumerate(tokens[0]):
        alone = model.forward(pack([[token]], [at], places(1), SIZE), kv)
        assert torch.equal(alone[0], found[at])
    with pytest.raises(BadInput, match="weights are plain numbers"):
        Model(config, random_weights(config), activations="int8")


class Watched(Mapping):
    """Weights made when asked for; keeps count of the matrices that somebody still holds."""

    def __init__(self, config):
        self.tensors = random_weights(config)
        self.held, self.most = 0, 0

    def __getitem__(self, name):
        made = self.tensors[name].clone()
        if made.dim() == 2:
            self.held += 1
            self.most = max(self.most, self.held)
            weakref.finalize(made.untyped_storage(), self._free)
        return made

    def _free(self):
        self.held -= 1

    def __iter__(self):
        return iter(self.tensors)

    def __len__(self):
        return len(self.tensors)


@pytest.mark.parametrize("tied", [False, True])
def test_packing_holds_the_tensors_of_one_layer_at_a_time(tied):
    layers = 6
    config = replace(
        LLAMA, layers=layers, windows=(0,) * layers, expert_layers=(False,) * layers, tied=tied
    )
    watched = Watched(config)
    fused = Fused(config, watched)
    assert watched.most <= 1 + 7, "the embedding and a layer's seven matrices"
    assert watched.held <= 1
    kv, same = memory(config), Fused(config, watched.tensors)
    batch = pack([[1, 2, 3]], [0], places(1), SIZE)
    assert torch.equal(fused.forward(batch, kv), same.forward(batch, memory(config)))
