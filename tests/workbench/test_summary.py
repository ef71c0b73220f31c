"""Figures of a run for people and for JSON: what was rejected is said with why."""

from engine.core.config import from_dict
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
