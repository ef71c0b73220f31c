"""Attention of a whole sequence, computed again: the engine's own weights, and tiles of them."""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.inference.engine import Engine
from engine.inference.executors.tensors.attention_mass import AttentionProbe
from engine.inference.executors.tensors.head_tiles import CELLS, AttentionTiles, pooled
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.executors.tensors.sequence_attention import (
    CHUNK,
    TOKENS,
    SequenceAttention,
    check_price,
)
from engine.models.families import parse
from engine.models.loading.load import random_model
from tests.engine.inference.small import TINY, config, request, tiny_model

LONG = CHUNK + 44  # two chunks, and tiles of two levels


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def tokens(count, seed=0):
    return np.random.default_rng(seed).integers(3, TINY["vocab_size"], count).astype(np.int32)


@pytest.fixture(scope="module")
def long(model):
    return SequenceAttention(model, tokens(LONG))


def whole(of, layer, head):
    """weights_NN of a head."""
    rows = np.arange(of.tokens)
    return of.weights(layer, head, rows, slice(0, of.tokens), of.log_sums(layer, head, rows))


@pytest.mark.parametrize("layer, head", [(0, 0), (1, 3)])
def test_the_last_tokens_weights_are_what_the_engine_samples(model, layer, head):
    chosen = config(pages=32, attention_every=1, attention_layer=layer, attention_head=head)
    executor, asked = executor_for(chosen, model, "tiny"), request(13, 1, 211, max_tokens=3)
    held, steps = Engine(chosen, executor, VirtualClock(), lambda event: None), []
    held.add(asked)
    execute = executor.execute
    executor.execute = lambda step: steps.append((step, execute(step))) or steps[-1][1]
    held.step()
    held.step()
    step, result = steps[-1]
    mass_P = AttentionProbe(model, layer, head).mass(step, executor.storage.kv, chosen.pages)
    np.testing.assert_allclose(result.attention_P, mass_P, atol=1e-6)
    context = 14
    seen = held.scheduler.rows.tokens[0, :context]
    weights_N = whole(SequenceAttention(model, seen), layer, head)[-1]
    pages = held.scheduler.rows.table(0)[: -(-context // 4)]
    by_page = np.add.reduceat(weights_N, np.arange(0, context, 4))
    np.testing.assert_allclose(by_page, mass_P[pages], atol=1e-5)


def test_weights_sum_to_one_over_what_is_seen(long):
    weights = whole(long, 1, 2)
    np.testing.assert_allclose(weights.sum(1), 1.0, atol=1e-5)
    assert not np.triu(weights, 1).any() and weights[-1, 0] > 0


def test_a_window_is_seen_no_further():
    windowed = parse({**TINY, "architectures": ["MistralForCausalLM"], "sliding_window": 8}, "w")
    weights = whole(SequenceAttention(random_model(windowed, seed=3), tokens(40)), 0, 1)
    assert not np.tril(weights, -8).any() and weights[39, 32] > 0
    np.testing.assert_allclose(weights.sum(1), 1.0, atol=1e-5)


@pytest.mark.parametrize("how", ["most", "mass"])
def test_a_tile_is_the_weights_pooled(long, how):
    tiles, weights = AttentionTiles(long), whole(long, 0, 3)
    assert tiles.top == 1
    for level in (0, 1):
        truth, side = pooled(weights, 1 << level, how), CELLS << level
        for row in range(-(-LONG // side)):
            found = np.frombuffer(tiles.tile(0, 3, level, row, 0, how), np.uint8)
            part = truth[row * CELLS : (row + 1) * CELLS, :CELLS]
            cells = found.reshape(CELLS, CELLS)[: part.shape[0], : part.shape[1]]
            seen = cells > 0
            assert (seen == (np.arange(part.shape[1]) <= np.arange(part.shape[0])[:, None]
                             + row * CELLS)).all()  # fmt: skip
            weight = 10.0 ** (5 * ((cells[seen] - 1.0) / 254 - 1))
            np.testing.assert_allclose(weight, np.clip(part[seen], 1e-5, 1), rtol=0.03, atol=1e-5)
    assert not any(tiles.tile(0, 3, 0, 0, 1, how)), "all keys come later"


def test_heads_at_a_glance_name_the_key_that_gets_most(long):
    grid = AttentionTiles(long).grid()
    assert grid.thumbs.shape[:2] == (2, 4) and grid.sampled <= LONG
    key, share = grid.sinks[1][2]
    received = AttentionTiles(long).received(1, 2)
    assert received.sum() == pytest.approx(1, abs=1e-4)
    assert key == int(received.argmax()) and share == pytest.approx(received[key], rel=0.2)


def test_what_is_too_dear_or_not_there_is_a_line(model, long):
    with pytest.raises(BadInput, match="the model knows 512"):
        check_price(model.config, 513)
    with pytest.raises(BadInput, match="look at a shorter request"):
        check_price(model.config, TOKENS + 1)
    for place in ((2, 0, 0, 0, 0), (0, 4, 0, 0, 0), (0, 0, 2, 0, 0), (0, 0, 0, 2, 0)):
        with pytest.raises(BadInput, match="tile"):
            AttentionTiles(long).tile(*place, "most")
    with pytest.raises(BadInput, match="most or mass"):
        AttentionTiles(long).tile(0, 0, 0, 0, 0, "median")
