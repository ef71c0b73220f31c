"""A timed forward pass gives the logits of an untimed one and a time for each of its parts."""

import pytest
import torch

from engine.models.batch import pack
from engine.models.footprint import step_work
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.models.timing import timed_forward
from tests.engine.models import small

TOKENS = [5, 9, 60, 33, 7]


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("name", ["llama-3", "deepseek-v2-lite", "gemma-2"])
def test_timing_changes_no_logit_and_covers_all_counted_work(name: str, plain: bool) -> None:
    config = small.config(name, num_hidden_layers=2)
    model = Model(config, small.weights(config), plain=plain)
    batch = pack([TOKENS], [0], [[2, 0, 3]], 2)
    untimed = model.forward(batch, PagedKV(model.spec, pages=4, page_size=2)).clone()
    timed, parts = timed_forward(model, batch, PagedKV(model.spec, pages=4, page_size=2))
    assert torch.equal(timed, untimed)
    assert all(part.seconds > 0 for part in parts)
    covered = [name for part in parts for name in part.covers]
    assert len(covered) == len(set(covered)), "no work is told twice"
    worked = {work.name for work in step_work(config, [5], [5]) if work.flops}
    assert worked <= set(covered)


def test_a_step_that_nobody_times_stamps_nothing() -> None:
    config = small.config("llama-3", num_hidden_layers=2)
    model = Model(config, small.weights(config))
    kv, batch = PagedKV(model.spec, pages=4, page_size=2), pack([TOKENS], [0], [[2, 0, 3]], 2)
    fused = model.fused
    assert fused is not None
    timed_forward(model, batch, kv)
    stamped = (fused._counters > 10**6).sum()  # type: ignore[attr-defined]
    model.forward(batch, kv)
    assert stamped == 1 + 2 * 8 + 2 and (fused._counters > 10**6).sum() == 0  # type: ignore[attr-defined]
