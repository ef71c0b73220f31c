"""A decode run's log: every key in one span, a modelled makespan worked out by hand, bad knobs."""

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Opened, Span
from engine.core.run import Run
from engine.core.tags import facts
from engine.hardware import device
from engine.kernels.paged_attention.run import TIMES, DecodeConfig, makespan, run

MODELLED = {
    "workers": "modelled", "workers.count": 4, "workers.item_cost": 0.0, "context": 4096,
    "others": 1.0, "batch": 3, "heads": 1, "kv_heads": 1, "dtype": "float16", "points": 2,
}  # fmt: skip


def log_of(**changes):
    return Run.execute(run, update(DecodeConfig(), changes)).log


def test_threads_compute_and_every_key_is_in_a_span():
    log = log_of(context=3000, batch=2, others=0.5, points=2, rounds=1)
    keys = 0
    for span in log.of(Span):
        if span.name == "attend":
            begin, end = facts(span.tag)["keys"].split("-")
            keys += int(end) - int(begin)
            assert span.start < span.time and "modelled" not in span.tag
    assert keys == 3000 + 1500
    [error] = [level.value for level in log.of(Level) if level.name == "error"]
    assert error < 2e-5
    opened = log[0]
    assert isinstance(opened, Opened) and opened.facts["lanes"] == ["worker 0", "worker 1"]
    [whole] = [span for span in log.of(Span) if span.lane == "paged_attention"]
    assert whole.flops == 4500 * 4 * 64 * 8 and whole.bytes >= 4500 * 2 * 64 * 4


@pytest.mark.parametrize(("kind", "share"), [("per_head", 1.0), ("lean", 0.75)])
def test_a_modelled_makespan_is_bytes_over_each_ones_share(kind, share):
    """Three equal heads on four processors: whole heads take one processor each."""
    log = log_of(**MODELLED, split=kind)
    on = device("a100-sxm-80gb")
    head = 4096 * 2 * 64 * 2 / (on.reached("bandwidth") / 4)
    assert makespan(log) == pytest.approx(share * head, rel=0.01)
    assert TIMES.read(log, kind)[0].tolist() == [2048, 4096]
    assert TIMES.read(log, kind)[1, -1] == pytest.approx(makespan(log), rel=1e-9)
    assert all(facts(span.tag)["grade"] == "modelled" for span in log.of(Span))


def test_who_is_alone_reads_faster_where_reach_allows():
    slow = makespan(log_of(**{**MODELLED, "batch": 1}, split="per_head"))
    fast = makespan(log_of(**{**MODELLED, "batch": 1, "workers.reach": 4.0}, split="per_head"))
    assert fast == pytest.approx(slow / 4, rel=0.01)


def test_a_separate_merge_kernel_costs_a_launch_and_the_lean_merge_none():
    on = device("a100-sxm-80gb")
    gaps = {}
    for kind in ("fixed_split", "lean"):
        spans = log_of(**MODELLED, split=kind).of(Span)
        attend = max(span.time for span in spans if span.name == "attend")
        gaps[kind] = min(span.start for span in spans if span.name == "merge") - attend
    assert gaps["fixed_split"] == pytest.approx(on.launch)
    assert gaps["lean"] <= 0.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": 6, "kv_heads": 4}, "cannot share"),
        ({"dtype": "float16"}, "threads compute float32 or bfloat16"),
        ({"workers.count": 64}, "give at most"),
        ({"workers": "modelled", "workers.device": "abacus"}, "no data sheet"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(changes, said):
    with pytest.raises(BadInput, match=said):
        log_of(**changes)
