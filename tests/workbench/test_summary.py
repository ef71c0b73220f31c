"""Figures of a run for people and for JSON: what was rejected is said with why."""

from engine.core.config import from_dict
from engine.core.events import Branch, Level, Mark, Opened, Token
from engine.core.log import Log
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.run import run
from workbench.summary import rejected, rows, summary


def log_of(**changes):
    fields = {
        "model": "gpt2",
        "executor": "modelled",
        "workload": {"kind": "uniform", "count": 6, "rate": 0.0, "shortest": 20, "longest": 60},
        "sampling": {"max_tokens": 4},
        **changes,
    }
    return Run.execute(run, from_dict(InferenceConfig, fields)).log


def test_rejected_requests_are_counted_with_why():
    log = log_of(pages=3, page_size=16)
    found = rejected(log)
    count = sum(row["count"] for row in found)
    assert 0 < count < 6 and len(found) == 1, "reasons that differ in numbers are of one kind"
    assert "the whole cache has 3" in found[0]["reason"]
    assert summary(log)["rejected"] == found
    shown = dict(rows(log))["requests rejected"]
    assert shown.startswith(f"{count} of 6: needs ") and f"(and {count - 1} like it)" in shown
    assert dict(rows(log))["requests finished"] == f"{6 - count} of 6"


def test_where_nothing_is_rejected_nothing_is_said():
    log = log_of()
    assert summary(log)["rejected"] == [] and "requests rejected" not in dict(rows(log))


def test_a_run_without_requests_says_what_its_levels_say():
    log = Log([Opened(0.0, {}, clock="virtual")])
    for lane, peak in (("plain", 2048.0), ("streamed", 1024.0)):
        log.emit(Level(0.1, lane, "peak bytes", peak))
        log.emit(Level(0.2, lane, "peak bytes", 8.0))
        log.emit(Level(0.3, lane, "loss", 2.0))
        log.emit(Level(0.4, lane, "loss", 1.5))
        log.emit(Level(0.4, lane, "sees/b1", 3.0))
    for rank in range(6):
        log.emit(Level(0.5, f"rank {rank}", "memory/weights", 1024.0 * (1 + rank)))
        log.emit(Level(0.5, f"rank {rank}", "memory/gradients", 1024.0))
    found = dict(rows(log))
    assert found["peak bytes"] == "plain 2 KiB, streamed 1 KiB"
    assert found["loss"] == "plain 1.5, streamed 1.5"
    assert found["memory, weights"] == "1 KiB (rank 0) to 6 KiB (rank 5) in 6 lanes"
    assert found["memory, gradients"] == "1 KiB in 6 lanes"
    assert not [name for name in found if "sees" in name]


def test_figures_of_prompts_are_left_out_where_none_was_computed():
    log = Log([Opened(0.0, {}), Branch(0.0, "t0", state="running"), Token(0.5, "t0", "a")])
    log.emit(Branch(1.0, "t0", state="finished"))
    found = dict(rows(log))
    assert found["tokens"] == "1" and "prompt tokens computed" not in found
    assert "preemptions" not in found
    assert "prompt tokens computed" in dict(rows(log_of()))


def test_what_was_refused_is_told_once_with_its_reason():
    log = Log([Opened(0.0, {})])
    log.emit(Branch(0.0, "alice", "", "running"))
    for time in (1.0, 2.0):
        log.emit(Mark(time, "threads", "refuse", f"fork of alice: {time:.0f} threads run"))
    assert dict(rows(log))["refused"] == "fork of alice: 1 threads run (and 1 like it)"
    assert summary(log)["refused"][0]["count"] == 2
