"""Attention over a split sequence equals one process's, whatever travels, however it is dealt."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.config import from_dict, kinds, to_dict, update
from engine.core.errors import BadInput
from engine.core.events import Level, Move, Span
from engine.core.run import Run
from engine.distributed.exposed_communication import exposed, sent
from engine.training.context_parallel.algorithm import SequenceAttention
from engine.training.context_parallel.config import SequenceConfig
from engine.training.context_parallel.executors.real import Real
from engine.training.context_parallel.layouts import Layout
from engine.training.context_parallel.memory_fit import longest, peak
from engine.training.context_parallel.run import ERROR, PEAK, run
from engine.training.context_parallel.tiles import pairs

SMALL = SequenceConfig(tokens=48, kv_heads=12, share=2, dim=8)
INLINE = {"executor": "modelled", "executor.numbers": True, "executor.dtype": "float32"}
KINDS = sorted(kinds(SequenceAttention))
LAYOUTS = sorted(kinds(Layout))


def executed(changes, config=SMALL):
    return Run.execute(run, update(config, changes)).log


def levels(log, name):
    return {e.lane: e.value for e in log.of(Level) if e.name == name}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_outputs_and_gradients_equal_one_process(kind, ranks):
    for layout in LAYOUTS:
        for causal in (True, False):
            changes = {**INLINE, "attention": kind, "ranks": ranks, "layout": layout}
            found = levels(executed({**changes, "causal": causal}), ERROR)
            assert sorted(found) == ["dk", "dq", "dv", "o"]
            assert all(0 < error <= 1e-5 for error in found.values()), (layout, causal, found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_left_out_shows(kind):
    found = levels(executed({**INLINE, "attention": kind, "dropped": 1}), ERROR)
    assert not any(error <= 1e-3 for error in found.values())


@pytest.mark.parametrize("kind", ["ring", "token_ring"])
def test_merging_without_weights_shows(kind):
    changes = {**INLINE, "attention": kind, "attention.rescale": False}
    assert levels(executed(changes), ERROR)["o"] > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_real_ranks_send_what_the_virtual_ones_do_and_compute_the_same(kind):
    changes = {"attention": kind, "ranks": 4}
    real, modelled = executed(changes), executed({**INLINE, **changes})
    assert max(levels(real, ERROR).values()) <= 1e-5
    assert sent(real) == sent(modelled)
    tasks = [
        sorted((s.lane, s.name, s.flops) for s in log.of(Span) if s.flops)
        for log in (real, modelled)
    ]
    assert tasks[0] == tasks[1]
    assert tasks[0]
    assert all(m.start <= m.time for m in real.of(Move))
    held, counted = levels(real, PEAK), levels(modelled, PEAK)
    assert max(held.values()) == pytest.approx(max(counted.values()), rel=0.25)


def test_bfloat16_shapes_travel_in_two_bytes_a_number():
    forward = {"executor": "modelled", "backward": False, "ranks": 4, "attention": "ring"}
    wide, narrow = (
        sent(executed({**forward, "executor.dtype": dtype})) for dtype in ("float32", "bfloat16")
    )
    assert wide == {link: 2 * size for link, size in narrow.items()}


def test_the_modelled_wait_falls_with_bandwidth_and_work_hides_all_of_it_in_the_end():
    base = {"executor": "modelled", "backward": False, "tokens": 8192, "dim": 128}
    waits = [
        max(exposed(executed({**base, "executor.link": name})).values())
        for name in ("ethernet-100", "pcie4-x16", "nvlink5")
    ]
    assert waits[0] > waits[1] > waits[2] >= 0


@given(
    layout=st.sampled_from(LAYOUTS), ranks=st.integers(1, 5), size=st.integers(1, 6),
    causal=st.booleans(), data=st.data(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_visible_pairs_are_those_of_the_mask(layout, ranks, size, causal, data):
    tokens = 2 * ranks * size
    dealt = kinds(Layout)[layout]()
    a, b = (data.draw(st.integers(0, ranks - 1)) for _ in range(2))
    spans = [dealt.spans(r, ranks, tokens) for r in range(ranks)]
    assert sorted(p for own in spans for run in own for p in run) == list(range(tokens))
    rows, columns = (np.concatenate([list(run) for run in spans[r]]) for r in (a, b))
    seen = (columns[None, :] <= rows[:, None]) if causal else np.ones((len(rows), len(columns)))
    assert pairs(spans[a], spans[b], causal) == int(seen.sum())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens": 100, "ranks": 3}, "tokens 100: do not divide into 6 parts"),
        ({"attention": "all_to_all", "ranks": 8}, "kv_heads 12"),
        ({"executor": "modelled", "executor.link": "string"}, "string"),
    ],
)
def test_what_does_not_fit_is_one_line(changes, said):
    with pytest.raises(BadInput, match=said) as found:
        executed(changes)
    assert "\n" not in str(found.value)


def test_a_lone_rank_counts_what_all_ranks_together_count():
    changes = {"ranks": 4, "causal": False, "attention": "ring_self_attention"}
    wide = {**changes, "executor": "modelled", "executor.dtype": "float32"}
    together = levels(executed(wide), PEAK)
    assert peak(update(SMALL, changes)) == pytest.approx(together["rank 3"], rel=0.05)


def test_what_fits_fits_and_a_little_more_does_not():
    config = update(SMALL, {"causal": False, "attention": "ring_self_attention"})
    room = 2**26
    found = longest(config, room)
    assert peak(update(config, {"tokens": found})) <= room
    more = found + max(1, found // 32) // 8 * 8 + 8
    assert peak(update(config, {"tokens": more})) > room
    assert longest(config, 10.0) == 0


def test_knobs_and_kinds_of_before_open():
    old = update(SMALL, {"place": "devices", "place.link": "nvlink5"})
    assert old == update(SMALL, {"executor": "modelled", "executor.link": "nvlink5"})
    saved = {**to_dict(old), "place": {**to_dict(old.executor), "kind": "devices"}}
    del saved["executor"]
    assert from_dict(SequenceConfig, saved) == old
    assert update(old, {"place": "processes"}).executor == Real()


def test_half_precision_merges_in_its_own_type():
    from engine.training.context_parallel.tiles import forward, merge

    torch.manual_seed(0)
    q = torch.randn(1, 2, 1, 8, 16).bfloat16()
    k, v = (torch.randn(1, 2, 16, 16).bfloat16() for _ in range(2))
    whole = forward(q, k, v, [range(8)], [range(16)], False, 0.25)
    halves = [
        forward(q, k[:, :, s], v[:, :, s], [range(8)], [range(8)], False, 0.25)
        for s in (slice(0, 8), slice(8, 16))
    ]
    o, lse = merge(*halves[0], *halves[1])
    assert o.dtype == torch.bfloat16
    assert lse.dtype == torch.float32
    assert torch.allclose(o.float(), whole[0].float(), atol=0.03)
    assert torch.allclose(lse, whole[1], atol=1e-5)


@pytest.mark.parametrize(("kind", "used"), [("ring", 4), ("token_ring", 12), ("all_to_all", 12)])
def test_the_links_that_get_lanes_are_those_that_carry_messages(kind, used):
    log = executed({"executor": "modelled", "attention": kind, "ranks": 4})
    shown = [lane for lane in log.opened.facts["lanes"] if lane.startswith("link")]
    assert set(shown) == {s.lane for s in log.of(Span) if s.name == "send"}
    assert len(shown) == used


def test_real_ranks_that_this_machine_has_no_memory_for_are_refused(monkeypatch):
    """They took the machine's, and the system ended others' processes for it."""
    monkeypatch.setattr("engine.core.memory.available", lambda: 1 << 16)
    with pytest.raises(BadInput, match=r"real ranks \(4\): takes .* left; take fewer tokens"):
        executed({"ranks": 4, "executor": "real"})
