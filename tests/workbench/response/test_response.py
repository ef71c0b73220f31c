"""Responses: any figure over one knob or two, under several seeds, from text a person typed."""

import pytest

from engine.core.errors import BadInput
from workbench.catalogue import study
from workbench.response.figure import curves, heat, worded
from workbench.response.response import Response, asked, knob_named, listed, names, table, usual

KNOBS = {"executor": "modelled", "model": "llama-2-7b", "dtype": "float16", "pages": 600,
         "workload.count": 6}  # fmt: skip


@pytest.fixture(scope="module")
def config():
    return study("flover").configured(KNOBS)


@pytest.fixture(scope="module")
def drawn(config):
    """Two knobs of two values each under two seeds, run to the end."""
    response = Response(study("flover"))
    sweep = asked(config, "workload.rate", "50, 400", "batching", "temporal_fusion, static_batch")
    response.ask(config, sweep, seeds=2).wait()
    return response


def test_every_point_is_run_under_every_seed(drawn):
    assert drawn.run.failure is None
    points = [(row.line, row.value, row.seed) for row in drawn.rows]
    assert len(points) == len(set(points)) == 8
    assert names(drawn.rows)[0] == "time"
    found = table(drawn.rows, "time")
    slow, fast = found["temporal_fusion", "50"], found["temporal_fusion", "400"]
    assert slow.n == 2 and slow.low < slow.value < slow.high  # seeds draw other arrivals
    assert slow.value > fast.value  # six requests take longer to come


def test_curves_have_a_line_each_and_a_map_a_cell_each(drawn):
    made = curves(drawn.rows, "workload.rate", "batching", "time")
    assert [item.label.value for item in made.legend[0].items] == [
        "batching = temporal_fusion", "batching = static_batch",
    ]  # fmt: skip
    assert made.yaxis[0].axis_label == "time (s)"
    made = heat(drawn.rows, "workload.rate", "batching", "time", dark=True)
    cells = made.renderers[0].data_source.data
    assert sorted(zip(cells["x"], cells["y"], strict=True)) == sorted(
        (value, line) for line, value in table(drawn.rows, "time")
    )
    with pytest.raises(BadInput, match="no run has come"):
        heat(drawn.rows, "workload.rate", "batching", "nonsense")


def test_what_a_knob_is_tried_at_to_begin_with(config):
    assert usual(knob_named(config, "workload.rate")) == ["50", "100", "200", "400", "800"]
    assert "static_batch" in usual(knob_named(config, "batching"))
    assert worded("serving.time_to_first_token.p50") == "serving.time_to_first_token.p50 (s)"
    assert worded("time_to_first_token.count") == "time_to_first_token.count"


@pytest.mark.parametrize(
    ("over", "values", "second", "seconds", "says"),
    [
        ("worklod.rate", "1", "", "", "did you mean workload.rate"),
        ("workload.rate", "fast", "", "", "workload.rate"),
        ("workload.rate", " , ", "", "", "give 1 to"),
        ("workload.rate", "1", "workload.rate", "2", "chosen twice"),
        ("batching", "nonsense", "", "", "no such kind"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_runs(
    config, over, values, second, seconds, says
):
    with pytest.raises(BadInput, match=says):
        asked(config, over, values, second, seconds)


def test_too_many_runs_are_refused(config):
    sweep = asked(config, "workload.rate", "1,2,3,4,5,6,7,8,9,10", "pages", "1,2,3,4,5,6,7,8,9,10")
    with pytest.raises(BadInput, match="at most"):
        Response(study("flover")).ask(config, sweep, seeds=5)
    with pytest.raises(BadInput, match="give 1 to"):
        listed("", "values", 3)
