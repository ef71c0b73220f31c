"""Attention beyond the contract of operators: empty rows, what is counted, what is refused."""

import itertools
import tracemalloc

import numpy as np
import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.run import Run
from engine.kernels.attention import OPERATOR, tiles_cpu
from engine.kernels.attention.cases import case
from engine.kernels.attention.config import AttentionConfig
from engine.kernels.attention.items import key_items, query_items
from engine.kernels.attention.problem import Problem
from engine.kernels.attention.reference import hidden
from engine.kernels.attention.run import KERNELS, MEMORY, run
from engine.kernels.attention.split import evenness, key_pairs, pairs
from engine.kernels.attention.work import flops, tile_bytes
from engine.kernels.operator import Variant
from engine.kernels.work_queue import first_free


@pytest.mark.parametrize("variant", sorted(set(OPERATOR.variants()) - {"library_cpu"}))
def test_a_query_that_sees_no_key_gives_nothing_and_no_gradient(variant):
    given = dict(case("", (10, 3), 2, 1, 8, keys=(3, 0)).make(0, torch.float32))
    for name in OPERATOR.inputs:
        given[name].requires_grad_()
    o_THD, lse_TH = OPERATOR(variant=variant, **given)
    true_o, true_lse = OPERATOR.reference(**given)
    blind = [0, 1, 2, 3, 4, 5, 6, 10, 11, 12]
    assert (o_THD[blind] == 0).all() and (lse_TH[blind] == -torch.inf).all()
    assert torch.allclose(o_THD, true_o, atol=1e-6)
    assert torch.allclose(lse_TH[7:10], true_lse[7:10], atol=1e-6)
    grads = torch.autograd.grad(o_THD.sum(), [given[name] for name in OPERATOR.inputs])
    assert all(torch.isfinite(grad).all() for grad in grads)
    assert (grads[0][blind] == 0).all() and grads[2].abs().sum() > 0


def test_the_library_leaves_what_it_does_not_take_and_sees_no_key_where_there_is_none():
    given = dict(case("", (3, 2), 2, 1, 8, keys=(4, 0), causal=False).make(0, torch.float32))
    for name in OPERATOR.inputs:
        given[name].requires_grad_()
    o_THD, lse_TH = OPERATOR(variant="library_cpu", **given)
    true_o, true_lse = OPERATOR.reference(**given)
    assert torch.allclose(o_THD, true_o, atol=1e-6) and (o_THD[3:] == 0).all()
    assert torch.allclose(lse_TH[:3], true_lse[:3], atol=1e-6)
    assert (lse_TH[3:] == -torch.inf).all()
    ours, true = (
        torch.autograd.grad((o * 3).sum(), [given[name] for name in OPERATOR.inputs])
        for o in (o_THD, true_o)
    )
    assert all(torch.allclose(x, y, atol=1e-5) for x, y in zip(ours, true, strict=True))
    for switch in ({"causal": True}, {"window": 2}, {"softcap": 1.0}):
        with pytest.raises(BadInput, match="library_cpu.*takes"):
            OPERATOR(variant="library_cpu", **{**given, **switch})


def test_a_variant_that_yields_is_picked_only_where_nobody_else_takes(monkeypatch):
    def variant(name, rank, **choices):
        return Variant(name, "", "cpu", lambda **given: name, rank=rank, **choices)

    shy = variant("shy", 2, yields=lambda given: True)
    plain = variant("plain", 1, refuses=lambda given: "" if given["causal"] else "takes none")
    found = {each.name: each for each in (shy, plain)}
    monkeypatch.setattr("engine.kernels.operator._variants", lambda package: found)
    q = torch.zeros(1, 1, 8)
    assert OPERATOR.pick({"q": q, "causal": True}) is plain
    assert OPERATOR.pick({"q": q, "causal": False}) is shy
    assert OPERATOR.pick({"q": q, "causal": True}, "shy") is shy


def test_no_sequences_at_all():
    given = dict(case("", (0,), 2, 2, 8).make(0, torch.float32))
    o_THD, lse_TH = OPERATOR(**given)
    assert o_THD.shape == (0, 2, 8) and lse_TH.shape == (0, 2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"k_SGD": torch.zeros(5, 2, 7)}, "size 8 meet keys of size 7"),
        ({"v_SGE": torch.zeros(4, 2, 8)}, "one value a key"),
        ({"q_THD": torch.zeros(5, 3, 8)}, "multiple of the key heads"),
        ({"query_start_B1": torch.tensor([0, 4])}, "ends at 4, of 5 tokens"),
        ({"query_start_B1": torch.tensor([0, 2, 5])}, "differ in length"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_in_one_line(changes, said):
    given = {**case("", (5,), 2, 2, 8).make(0, torch.float32), **changes}
    for variant in OPERATOR.variants():
        with pytest.raises(BadInput, match=said):
            OPERATOR(variant=variant, **given)


def test_a_head_too_large_for_a_gpu_tile_is_refused():
    given = case("", (5,), 1, 1, 300).make(0, torch.float32)
    with pytest.raises(BadInput, match="at most 256 numbers, not 300"):
        OPERATOR.pick(given, "tiles")


@pytest.mark.parametrize(("queries", "keys"), [(7, 7), (5, 12), (12, 5), (1, 9)])
@pytest.mark.parametrize(("causal", "window"), [(True, 0), (False, 0), (True, 3), (False, 4)])
def test_pairs_count_what_the_mask_lets_through(queries, keys, causal, window):
    seen = ~hidden(queries, keys, causal, window)
    assert pairs(0, queries, queries, keys, causal, window) == int(seen.sum())
    assert pairs(1, queries - 1, queries, keys, causal, window) == int(seen[1:].sum())
    if not window:
        assert key_pairs(1, keys - 1, queries, keys, causal) == int(seen[:, 1:].sum())


@pytest.mark.parametrize(
    ("split", "causal", "spread"),
    [*itertools.product(("heads", "row_blocks"), (True, False), (0, 0.7))],
)
def test_items_hold_every_block_once_and_all_pairs(split, causal, spread):
    changes = {"split": split, "causal": causal, "spread": spread, "sequences": 3, "kv_heads": 2,
               "share": 3, "tokens": 300}  # fmt: skip
    config = update(AttentionConfig(), changes)
    problem = config.problem()
    for items, heads in (
        (query_items(problem, config.split), 6),
        (key_items(problem, config.split), 2),
    ):
        blocks = [tuple(task) for item in items for task in item.tasks.tolist()]
        wanted = {
            (b, h, first)
            for b, n in enumerate(problem.lengths)
            for h in range(heads)
            for first in range(0, n, 64)
        }
        assert len(blocks) == len(set(blocks)) and set(blocks) == wanted
        seen = sum(6 * int((~hidden(n, n, causal, 0)).sum()) for n in problem.lengths)
        assert sum(item.pairs for item in items) == seen


def test_deal_gives_the_next_item_to_the_first_free_worker():
    dealt = first_free([[3.0], [1.0], [1.0], [2.0]], 2)
    assert dealt == [(0, 0.0, 3.0), (1, 0.0, 1.0), (1, 1.0, 2.0), (1, 2.0, 4.0)]
    assert evenness([3.0, 4.0], 2) == pytest.approx(7 / 8)
    assert evenness([5.0], 4) == pytest.approx(1 / 4)


def test_work_counts_the_products_and_the_tiles_traffic():
    given = case("", (128,), 2, 1, 16, causal=False).make(0, torch.float32)
    work = OPERATOR.work(given)
    assert work.flops == 4 * 128 * 128 * 2 * 16 == flops(128 * 128, 2, 16, 16)
    assert work.bytes["memory"] == 4 * (2 * 128 * 2 * 16 + 2 * 128 * 16) + 4 * 128 * 2
    assert work.specials == 2 * 128 * 128
    streamed = tile_bytes(128 * 128, 128, 2, 16, 16, 64)
    assert streamed == 4 * (2 * (2 * 128) * 32 + 2 * 128 * 32)  # two blocks of queries a head


def outcome(**changes):
    return Run.execute(run, update(AttentionConfig(), {"tokens": 256, "checked": False, **changes}))


def computed(config: AttentionConfig) -> Problem:
    """The problem with all its kernels run by one worker."""
    problem = config.problem()
    for phase in config.scores.phases(problem, config.split, 1):
        do = phase.open()
        for item in phase.items:
            do(item, 0)
    return problem


@pytest.mark.parametrize("scores", ["tiled", "materialised"])
def test_memory_taken_is_memory_allocated(scores):
    changes = {"scores": scores, "tokens": 1024, "kv_heads": 2, "dim": 32}
    config = update(AttentionConfig(), changes)
    computed(update(config, {"tokens": 64}))  # compiled
    tracemalloc.start()
    problem = computed(config)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    taken = problem.ledger.most + sum(array.nbytes for array in problem.results.values())
    assert taken <= peak < taken * 1.1 + 2**18  # what one item needs for a moment, and Python


def test_every_kernel_has_a_span_with_its_work_and_items_have_workers():
    log = outcome(kv_heads=2, share=2).log
    kernels = [span for span in log.of(Span) if span.lane == KERNELS]
    assert [k.name for k in kernels] == ["forward", "backward keys", "backward queries"]
    seen = 4 * 256 * 257 // 2
    assert [k.flops / seen for k in kernels] == [4 * 64, 8 * 64, 6 * 64]
    assert all(k.bytes > 0 and "shape=4x256x64" in k.tag for k in kernels)
    items = [span for span in log.of(Span) if span.lane != KERNELS]
    assert {span.lane for span in items} <= set(log.opened.facts["lanes"])
    assert len(items) == (4 + 2 + 4) * 4 and not any(span.flops for span in items)


def test_a_modelled_run_is_modelled_and_draws_no_inputs():
    log = outcome(workers="modelled", tokens=65536, backward=False).log
    assert log.opened.clock == "virtual" and len(log.opened.facts["lanes"]) == 108
    assert all("grade=modelled" in span.tag for span in log.of(Span))
    assert not [level for level in log.of(Level) if level.name == MEMORY]


def test_workers_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="threads on .* cores; give at most"):
        outcome(workers="real", **{"workers.count": 64})
    with pytest.raises(BadInput, match="no units or no exponentials"):
        outcome(workers="modelled", **{"workers.device": "tpu-v5e"})


def test_both_forms_of_scores_agree():
    results = {}
    for scores in ("tiled", "materialised"):
        config = update(
            AttentionConfig(),
            {"scores": scores, "tokens": 130, "sequences": 2, "spread": 0.5, "kv_heads": 2,
             "share": 2, "dim": 24},
        )  # fmt: skip
        log = Run.execute(run, config).log
        results[scores] = {lv.lane: lv.value for lv in log.of(Level) if lv.name == "error"}
    for found in results.values():
        assert set(found) == {"o", "dq", "dk", "dv"}
        assert max(found.values()) < 1e-5 and np.isfinite(list(found.values())).all()


@pytest.mark.parametrize(
    "switches", [{"causal": False}, {"causal": True}, {"causal": True, "window": 100}]
)
def test_blocks_of_queries_that_share_keys_give_what_each_gives_alone(switches, monkeypatch):
    given = case("", (300, 77), 8, 2, 64, keys=(330, 77), **switches).make(0, torch.float32)
    found = []
    for together in (1, 4):
        monkeypatch.setattr(tiles_cpu, "_together", lambda count, together=together: together)
        found.append(OPERATOR(variant="tiles_cpu", **given))
    for alone, shared in zip(*found, strict=True):
        assert torch.isfinite(shared).all()
        torch.testing.assert_close(shared, alone, rtol=1e-5, atol=1e-6)
