"""The search over splits: against every split by hand, the clock, published runs, and the views."""

import re
from itertools import product

import pytest

from engine.cluster.gradient_sum import gradient_sum
from engine.cluster.parallelism import (
    ParallelismConfig,
    candidates,
    estimated,
    front,
    on_cluster,
    on_the_clock,
    search,
)
from engine.cluster.parallelism_run import PLOT, run
from engine.core.config import update
from engine.core.events import Mark
from engine.core.run import Run
from engine.distributed.flows.collective_work import algorithms
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.stage_costs.transformer import Transformer
from widgets.fold import History
from widgets.view import view
from workbench.cli.main import main
from workbench.studies.training._megatron import changes, predicted, rows

SMALL = ParallelismConfig(
    model=Transformer(hidden=1024, layers=8, heads=8, sequence=512), devices=16, batch=32
)


def test_every_split_uses_all_devices_and_the_whole_batch():
    found = list(candidates(SMALL))
    assert len(found) > 50
    for split in found:
        passes = split.passes
        assert passes.tensor * split.pipeline * passes.context * passes.data == 16
        assert passes.data * passes.microbatch * split.microbatches == 32
    seen = {(*split.words().values(),) for split in found}
    assert len(seen) == len(found)


def test_all_that_divide_are_there():
    found = {(s.passes.tensor, s.pipeline, s.passes.context) for s in candidates(SMALL)}
    wanted = {
        (t, p, c)
        for t, p, c in product((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8, 16))
        if 16 % (t * p * c) == 0 and 32 % (16 // (t * p * c)) == 0
    }
    assert found == wanted


def test_the_front_holds_what_nobody_beats():
    found = search(SMALL)
    kept = found.front()
    clocked = [split for split in found.splits if split.clocked]
    for split in clocked:
        beaten = [s for s in kept if s.seconds <= split.seconds and s.memory <= split.memory]
        assert beaten, split.words()
    assert [s.seconds for s in kept] == sorted(s.seconds for s in kept)
    assert [s.memory for s in kept] == sorted((s.memory for s in kept), reverse=True)
    assert front([]) == []


@pytest.mark.parametrize(("pipeline", "microbatches", "chunks"), [(1, 8, 1), (4, 8, 1), (4, 8, 2)])
def test_the_closed_form_is_what_the_clock_says_where_sending_takes_no_time(
    pipeline, microbatches, chunks
):
    passes = Transformer(
        hidden=4096, layers=16, heads=32, tensor=1, data=1, microbatch=1, vocabulary=1, network=1e13
    )
    split = estimated(passes, pipeline, microbatches, chunks)
    played = on_the_clock(split)
    assert played.seconds == pytest.approx(split.seconds, rel=0.01)
    assert played.memory == pytest.approx(split.memory, rel=1e-6)
    assert played.bubble == pytest.approx(split.bubble, abs=0.003)


@pytest.mark.parametrize(
    ("sizes", "knob", "full"),
    [
        ({"tensor": 4, "data": 1}, "scale_up", 0.8),
        ({"tensor": 1, "data": 8}, "network", 2e10),
    ],
)
def test_communication_is_what_a_step_takes_longer_on_links_of_half_the_speed(sizes, knob, full):
    passes = Transformer(hidden=4096, layers=16, heads=32, microbatch=1, **sizes)
    quick, slow = (
        on_the_clock(estimated(passes.model_copy(update={knob: rate}), 1, 8, 1))
        for rate in (full, full / 2)
    )
    longer = slow.seconds - quick.seconds
    assert 0.001 < quick.communication < 0.9
    assert quick.communication * quick.seconds == pytest.approx(longer, rel=1e-6)


def test_the_published_split_of_a_model_is_among_those_found_and_not_the_quickest():
    row = rows("weak_scaling")[-1]
    config = ParallelismConfig(
        model=Transformer(hidden=row["hidden"], layers=row["layers"], heads=row["heads"]),
        devices=row["devices"],
        batch=row["batch"],
        clocked=5,
    )
    own, _ = predicted(update(PipelineConfig(passes=Transformer()), changes(row)))
    found = search(config)
    same = [
        s
        for s in found.splits
        if (s.passes.tensor, s.pipeline, s.passes.context, s.passes.recompute)
        == (row["tensor"], row["pipeline"], 1, "full")
    ]
    assert any(s.passes.data == row["devices"] // (row["tensor"] * row["pipeline"]) for s in same)
    assert found.splits[0].seconds < own
    assert found.splits[0].passes.recompute != "full"  # what 2205.05198 found a year later


def test_more_memory_is_never_slower():
    times = [
        search(update(SMALL, {"fill": fill, "clocked": 2000})).splits[0].seconds
        for fill in (0.05, 0.2, 0.9)
    ]
    assert times == sorted(times, reverse=True)


def test_on_a_cluster_the_sum_is_the_fastest_on_its_links_and_said(capsys):
    """Two adapters for eight devices: what leaves a node weighs, and hierarchical leaves least."""
    small = on_cluster(update(SMALL, {"cluster": "ethernet-pods", "devices": 32}))
    wanted = {"tensor": 1, "data": 32}
    split = next(s for s in candidates(small) if wanted.items() <= s.words().items())
    there = on_the_clock(split, small.cluster)
    assert there.words()["all_reduce"] == "hierarchical"
    assert set(algorithms("all_reduce")) > {"hierarchical"}
    passes = there.passes
    assert (passes.node, passes.network) == (8, pytest.approx(0.8 * 1.25e10 * 2 / 8))
    crowded = gradient_sum("ethernet-pods", passes, 1, 1e9)
    roomy = gradient_sum("selene", passes, 1, 1e9)
    assert crowded[1] > roomy[1] > 0
    words = ["--set", "cluster=selene", "--set", "devices=4096"]
    assert main(["parallelism", *words]) == 2
    assert "4,096 devices asked for, it has 3,072" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("turned", "says"),
    [
        ({"devices": 7, "batch": 5}, "divides 7 devices, batch 5"),
        ({"model.hidden": 1000}, "1000 hidden units do not divide among 96 heads; take a multiple"),
        ({"model.hidden": 65536, "model.layers": 64, "model.heads": 8}, "none of .* fits; the"),
    ],
)
def test_where_nothing_is_found_it_says_why(turned, says, capsys):
    sets = [word for k, v in turned.items() for word in ("--set", f"{k}={v}")]
    small = ["--set", "devices=16", "--set", "batch=32", "--set", "model.layers=8"]
    assert main(["parallelism", *small, *sets]) == 2
    assert re.search(says, capsys.readouterr().err)


def test_a_search_is_a_run_with_curves_and_sentences():
    log = Run.execute(run, SMALL).log
    frame = History(log, view("curves").fold()).latest().frame()
    assert any(PLOT.title in str(panel) for panel in frame["panels"])
    told = [mark.text for mark in log.of(Mark)]
    assert told and all("tensor" in text and "GiB" in text for text in told)


def test_the_command_prints_the_front_and_how_to_see_its_first(capsys, tmp_path):
    saved = tmp_path / "splits.run"
    small = ["--set", "devices=16", "--set", "batch=32", "--set", "model.layers=8"]
    small += ["--set", "model.heads=8", "--set", "model.hidden=1024", "--set", "model.sequence=512"]
    assert main(["parallelism", *small, "--save", str(saved)]) == 0
    out = capsys.readouterr().out
    assert "microbatch" in out and saved.exists()
    words = next(line for line in out.splitlines() if "workbench run megatron" in line).split()
    assert main([*words[1:], "--json"]) == 0
