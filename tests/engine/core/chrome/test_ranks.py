"""Ranks of one job on one axis: clocks that differ, and who is waited for."""

import pytest

from engine.core.chrome.device_trace import DeviceTrace
from engine.core.chrome.difference import difference
from engine.core.chrome.ranks import offsets
from engine.core.chrome.read import read_chrome
from engine.core.errors import BadInput
from engine.core.events import Mark
from tests.engine.core.chrome.traced import of_rank, waits, written
from workbench.traces.read import log_of_ranks, open_log


@pytest.fixture
def ranks(tmp_path):
    """Three ranks, the middle one late, whose clocks differ; in no order."""
    made = [(2, 5, 4_000.0), (0, 0, 1_000.0), (1, 40, 9_000.0)]
    return [written(tmp_path, **of_rank(rank, late, clock)) for rank, late, clock in made]


def test_the_rank_that_comes_last_is_named(ranks):
    log = log_of_ranks(ranks)
    [said] = [mark.text for mark in log.of(Mark) if mark.name == "ranks"]
    # 40 and 35 µs in each of six: a mean of 37.5 for each other rank.
    assert "rank 1 is the straggler: last to begin in 6 of 6 communications" in said
    assert "waited 0.225 ms for it" in said
    lanes = log.opened.facts["spans"]["lanes"]
    assert [lane.split(",")[0] for lane in lanes[::3]] == ["rank 0", "rank 1", "rank 2"]
    trace = DeviceTrace.of_log(log)
    assert trace.launched_by.max() >= 0 and len(trace.breakdowns()) == 3
    ends = {
        round(float(stop) * 1e6, 3)
        for stop, name in zip(trace.spans.stop, trace.spans.name, strict=True)
        if trace.spans.names[name].startswith("nccl")
    }
    assert len(ends) == 6  # all ranks' reductions end at once, on one axis
    for row, by in enumerate(trace.launched_by):  # launches stay within their rank
        if by >= 0:
            own, caller = (lanes[trace.spans.lane[place]].split(",")[0] for place in (row, by))
            assert own == caller


def test_without_communication_the_traces_own_times_stand(tmp_path):
    one, other = waits(), [{**e, "ts": e["ts"] + 500} for e in waits()]
    files = [written(tmp_path, rows, f"{n}.json") for n, rows in enumerate((one, other))]
    assert offsets([read_chrome(path) for path in files]) == pytest.approx([0, 5e-4])
    [said] = [mark.text for mark in log_of_ranks(files).of(Mark) if mark.name == "ranks"]
    assert "nothing says who is late" in said
    with pytest.raises(BadInput, match="give 2 to"):
        log_of_ranks(files[:1])


@pytest.mark.parametrize("given", [(3, 3), (3, None), (None, None), (1, 0)])
def test_ranks_that_traces_give_twice_or_not_at_all_are_said(tmp_path, given):
    files = []
    for place, rank in enumerate(given):
        head = {} if rank is None else {"distributedInfo": {"rank": rank}}
        files.append(written(tmp_path, waits(), f"{place}.json", **head))
    [said] = [mark.text for mark in log_of_ranks(files).of(Mark) if mark.name == "ranks"]
    assert ("they count as given" in said) == (given[0] == 3)


def test_two_traces_differ_by_kernel(tmp_path):
    one = DeviceTrace.of_log(open_log(written(tmp_path, waits())))
    longer = [{**e, "dur": 3 * e["dur"]} if e["name"] == "norm" else e for e in waits()]
    less = [e for e in longer if e["name"] != "gemm"]
    other = DeviceTrace.of_log(open_log(written(tmp_path, less, "u.json")))
    found = difference(one.kernels(), other.kernels())
    told = [(d.name, d.counts, round(d.more * 1e6, 6)) for d in found[:2]]
    assert told == [("norm", (1, 1), 40), ("gemm", (1, 0), -10)]
    assert all(d.more == 0 for d in found[2:])
