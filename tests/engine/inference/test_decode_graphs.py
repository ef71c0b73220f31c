"""Decode passes at fixed places, here through Triton's interpreter: the logits of passes that find
their inputs in each batch; and on a GPU, where there is one, recorded."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed here")

from engine.inference.executors.tensors.decode_graphs import DecodeGraphs, fits, rows_for
from engine.models.batch import Batch, pack
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.models.ops import operator_ops, plain_ops
from tests.engine.models import small
from tests.engine.models.small_configs import FAMILIES
from tests.engine.models.test_operator_ops import TRITON

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAGE, ROOM = 2, 12
TABLES = [[2, 0, 3, 9], [8, 1, 7, 10], [4, 5, 6, 11]]
PROMPTS = [[5, 9, 60], [33, 7], [11, 12, 13, 14]]


def model_of(name: str, **fields: int) -> Model:
    config = small.config(name, **fields)
    ops = None if DEVICE == "cuda" else operator_ops(TRITON)
    return Model(config, small.weights(config), device=DEVICE, ops=ops)


def cache(model: Model) -> PagedKV:
    """With all prompts in it; one page more than is given out."""
    kv = PagedKV(model.spec, ROOM + 1, PAGE, DEVICE)
    model.forward(pack(PROMPTS, [0, 0, 0], TABLES, PAGE), kv)
    return kv


def step(rows: list[int], ahead: int) -> Batch:
    """A new token of each of the rows, `ahead` tokens after their prompts."""
    starts = [len(PROMPTS[row]) + ahead for row in rows]
    return pack([[3 + row] for row in rows], starts, [TABLES[row] for row in rows], PAGE)


@pytest.mark.parametrize("name", ["llama-3", "qwen3", "gemma-2"])
def test_steps_of_changing_rows_give_the_logits_of_passes_of_their_own(name: str) -> None:
    model = model_of(name, num_hidden_layers=2)
    own, held = cache(model), cache(model)
    assert fits(model, held)
    graphs = DecodeGraphs(model, held, nobody=ROOM * PAGE)
    for rows, ahead in (([0, 1, 2], 0), ([2, 0], 1), ([1], 1), ([0, 1, 2], 2)):
        batch = step(rows, ahead)
        assert graphs.takes(batch)
        torch.testing.assert_close(
            graphs.forward(batch), model.forward(batch, own), rtol=1e-4, atol=1e-4
        )
    assert sorted(graphs.recorded) == [1, 2, 3]
    plans = [plan for each in graphs.recorded.values() for plan in each.plans.values()]
    assert len(plans) >= 3 and len({plan.ready.part_o.data_ptr() for plan in plans}) == 1


def test_rows_that_fill_a_recording_up_write_where_nobody_reads() -> None:
    model = model_of("llama-3", num_hidden_layers=1)
    own, held = cache(model), cache(model)
    graphs = DecodeGraphs(model, held, nobody=ROOM * PAGE)
    starts = [len(PROMPTS[0])] * 5
    batch = pack([[9]] * 5, starts, [[page, 0, 9] for page in (2, 4, 8, 10, 11)], PAGE)
    batch.slots_T = np.array([2, 3, 6, 7, 22], np.int32)
    graphs.forward(batch), model.forward(batch, own)
    assert list(graphs.recorded) == [6]
    for name in ("k", "v"):
        torch.testing.assert_close(held.layers[0][name][:ROOM], own.layers[0][name][:ROOM])


def test_logits_of_some_rows_only() -> None:
    model = model_of("llama-3", num_hidden_layers=1)
    kv = cache(model)
    graphs, batch = DecodeGraphs(model, kv, ROOM * PAGE), step([0, 1, 2], 0)
    whole = graphs.forward(batch)
    batch.logits_at_R = np.array([2, 0], np.int32)
    torch.testing.assert_close(graphs.forward(batch), whole[[2, 0]])


def test_batches_of_other_kinds_are_left_to_the_model() -> None:
    model = model_of("llama-3", num_hidden_layers=1)
    graphs = DecodeGraphs(model, cache(model), ROOM * PAGE)
    assert not graphs.takes(pack(PROMPTS, [0, 0, 0], TABLES, PAGE))
    by_slot = step([0, 1], 0)
    by_slot.by_slot = True
    assert not graphs.takes(by_slot)


def test_which_models_are_recorded() -> None:
    taken = {
        name: fits(model, PagedKV(model.spec, 1, PAGE, states=1))
        for name in FAMILIES
        for config in [small.config(name)]
        for model in [Model(config, small.weights(config), ops=operator_ops(TRITON))]
    }
    assert taken["llama-3"] and taken["qwen3"] and taken["gemma-3"]
    assert not (taken["mixtral"] or taken["deepseek-v3"] or taken["qwen3-next"])
    model = Model(small.config("llama-3"), small.weights(small.config("llama-3")), ops=plain_ops())
    assert not fits(model, PagedKV(model.spec, 1, PAGE)), "its attention has no plan"


@pytest.mark.parametrize("count", range(1, 70))
def test_a_recording_has_at_most_half_as_many_rows_again(count: int) -> None:
    assert count <= rows_for(count) <= max(count * 1.5, 1)
