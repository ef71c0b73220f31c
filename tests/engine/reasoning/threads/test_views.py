"""Attention over views equals a from-scratch forward that turns every key for every reader."""

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.models.batch import Views, pack
from engine.models.model import Model
from engine.models.view_attention import require_views
from engine.reasoning.threads.reference import Record, logits
from tests.engine.models.fused import CONFIGS, random_weights
from tests.engine.models.small import config, weights
from tests.engine.reasoning.written import SIZE, ThreadCaches, play

GENERAL = ("llama-3", "qwen3", "qwen3-yarn", "mistral", "gemma-2", "qwen3-moe", "llama-linear")
DENSE = ("llama", "qwen 3", "sliding window", "nothing divides", "one of everything")


def worst(model, weights, shift=0):
    table = ThreadCaches(model, shift)
    play(table)
    want = logits(model.config, weights, table.record.tokens, table.record.seen())
    return float((torch.cat(table.logits) - want).abs().max())


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "kernels"])
@pytest.mark.parametrize("family", GENERAL)
def test_every_family_sees_moved_blocks_exactly(family, plain):
    shape = config(family)
    held = weights(shape)
    assert worst(Model(shape, held, plain=plain), held) < 1e-4


@pytest.mark.parametrize("name", DENSE)
def test_the_fused_step_sees_moved_blocks_exactly(name):
    held = random_weights(CONFIGS[name])
    model = Model(CONFIGS[name], held)
    assert model.fused is not None
    assert worst(model, held) < 1e-4


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
def test_a_wrong_shift_is_noticed(plain):
    shape = config("llama-3")
    held = weights(shape)
    assert worst(Model(shape, held, plain=plain), held, shift=1) > 1e-2


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
def test_who_sees_nothing_else_is_an_ordinary_request(plain):
    shape = config("qwen3")
    model = Model(shape, weights(shape), plain=plain)
    chunks, pages = [[5, 6, 7], [8, 9]], [[0, 1], [2]]
    bare = ThreadCaches(model).kv
    alone = model.forward(pack(chunks, [0, 0], pages, SIZE), bare)
    batch = pack(chunks, [0, 0], pages, SIZE)
    none = np.zeros(0, np.int32)
    batch.views = Views(np.zeros(3, np.int32), none, none, none, np.zeros((0, 1), np.int32))
    seen = model.forward(batch, ThreadCaches(model).kv)
    torch.testing.assert_close(seen, alone, rtol=1e-5, atol=1e-5)


def test_a_token_is_seen_by_block_count_and_position():
    record = Record()
    record.add([1, 2], "p", (("p", 0, 2),))
    record.add([3], "a", (("p", 0, 1), ("a", 5, 1)))
    record.add([4], "b", (("b", 0, 1), ("a", 3, 1)))
    record.fork("c", "p", 1)
    record.add([5], "c", (("p", 0, 2), ("c", 2, 2)))
    seen = record.seen()
    pairs = [
        list(zip(seen.token[a:b].tolist(), seen.place[a:b].tolist(), strict=True))
        for a, b in zip(seen.first, seen.first[1:], strict=False)
    ]
    assert pairs == [
        [(0, 0)], [(0, 0), (1, 1)], [(0, 0), (2, 5)], [(3, 0)], [(0, 0), (1, 1), (0, 2), (4, 3)]
    ]  # fmt: skip
    assert seen.own.tolist() == [0, 1, 5, 0, 3]


@pytest.mark.parametrize("family", ["gpt2", "llama-dynamic", "deepseek-v2-lite"])
def test_models_whose_keys_cannot_move_are_refused(family):
    with pytest.raises(BadInput, match="views of the cache need"):
        require_views(config(family))
