"""A trie of requests: what it computes, who sees whom, and that it trains as its requests would."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.core.config import update
from engine.recipes.from_examples.fork_and_join import RECIPE, units
from engine.tasks.part_sums import PartSums, forked, serial
from engine.training.data.packing import Unit, trie
from engine.training.losses.language import fresh_weights
from workbench.studies.reasoning._threadweaver import difference, separate

SMALL = {"hidden": 32, "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 16, "width": 48}
FORK = [
    Unit([1, 2], [3, 4]),  # prompt, outlines
    Unit([1, 2, 3, 4, 5, 6], [8]),  # thread 1
    Unit([1, 2, 3, 4, 5, 7], [9]),  # thread 2
    Unit([1, 2, 3, 4, 5, 6, 8, 5, 7, 9], [2]),  # the join: thread 1 is read where it was said
]


@pytest.fixture(scope="module")
def model():
    recipe = update(RECIPE, SMALL)
    tokenizer = recipe.tokenizer()
    config = recipe.llama(tokenizer.get_vocab_size())
    return config, fresh_weights(config, 1), tokenizer


def test_what_is_shared_is_there_once_at_its_own_depth():
    found = trie(FORK)
    assert found.tokens_T.tolist() == [1, 2, 3, 4, 5, 6, 8, 7, 9, 5, 7, 9, 2]
    assert found.positions_T.tolist() == [0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10]
    predictions = sorted(zip(found.at_L.tolist(), found.target_L.tolist(), strict=True))
    assert predictions == [(1, 3), (2, 4), (5, 8), (7, 9), (11, 2)]


def test_a_thread_sees_its_ancestors_and_no_sibling():
    sees = trie(FORK).visible_TT
    assert np.flatnonzero(sees[8]).tolist() == [0, 1, 2, 3, 4, 7, 8]  # thread 2
    assert np.flatnonzero(sees[12]).tolist() == [0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12]  # the join


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("parts", [2, 4])
def test_loss_and_gradients_are_those_of_each_request(model, dtype, bound, parts):
    config, weights, tokenizer = model
    mine = units(tokenizer, forked(PartSums(parts=parts).problem("train", parts)))
    found = difference(config, weights, mine, dtype)
    assert found.loss < bound
    assert found.gradient < bound
    assert found.trie_tokens < found.separate_tokens


def test_siblings_that_see_each_other_change_both(model):
    config, weights, tokenizer = model
    mine = units(tokenizer, forked(PartSums(parts=3).problem("train", 5)))
    found = difference(config, weights, mine, siblings_apart=False)
    assert found.loss > 1e-6
    assert found.gradient > 1e-4


tokens = st.lists(st.integers(0, 3), min_size=1, max_size=5)


@given(st.lists(st.builds(Unit, tokens, tokens), min_size=1, max_size=6))
def test_any_units_at_all(model, mine):
    """Equal ones, prefixes of others and completions that meet count as often as they are there."""
    config, weights, _ = model
    found = difference(config, weights, mine)
    assert found.loss < 1e-9
    assert found.gradient < 1e-9
    assert trie(mine).weight_L.sum() == sum(len(one.at_L) for one in separate(mine))


def test_a_serial_trace_is_a_trie_without_branches(model):
    mine = units(model[2], serial(PartSums().problem("train", 0)))
    found = trie(mine)
    assert found.positions_T.tolist() == list(range(len(found)))
    assert found.at_L.tolist() == separate(mine)[0].at_L.tolist()
