"""The roofline against its closed forms and data sheets; collectives against theirs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.core.events import Closed, Opened, Span
from engine.core.log import Log
from engine.hardware import collectives
from engine.hardware.device import Device, device
from engine.hardware.link import Link, link
from engine.hardware.power import joules, watts
from engine.hardware.roofline import attainable, bound, ridge

PLAIN = Device(
    name="plain",
    kind="gpu",
    grade="B",
    peaks={"bfloat16": 100.0},
    bandwidth=10.0,
    capacity=1000.0,
    launch=0.5,
    tdp=300.0,
)
WIRE = Link(name="wire", bandwidth=100.0, latency=0.25)


def test_work_takes_the_longer_of_arithmetic_and_memory_plus_launch():
    assert bound(PLAIN, 1000.0, 10.0, "bfloat16").seconds == 10.0 + 0.5
    assert bound(PLAIN, 1000.0, 10.0, "bfloat16").roof == "bfloat16"
    assert bound(PLAIN, 10.0, 200.0, "bfloat16").seconds == 20.0 + 0.5
    assert bound(PLAIN, 10.0, 200.0, "bfloat16").roof == "bandwidth"
    assert bound(PLAIN, 0.0, 0.0, "bfloat16").seconds == 0.5
    assert bound(PLAIN, 1.0, 1.0, "bfloat16").roof == "launch"


def test_the_ridge_is_where_both_roofs_meet():
    assert ridge(PLAIN, "bfloat16") == 10.0
    assert attainable(PLAIN, 10.0, "bfloat16") == 100.0
    assert attainable(PLAIN, 5.0, "bfloat16") == 50.0
    assert attainable(PLAIN, 50.0, "bfloat16") == 100.0


def test_data_sheet_ridges_are_the_known_ones():
    assert ridge(device("h100-sxm").at_best(), "bfloat16") == pytest.approx(295.2, abs=0.1)
    assert ridge(device("a100-sxm-80gb").at_best(), "bfloat16") == pytest.approx(153.0, abs=0.1)


@given(st.floats(1, 1e15), st.floats(1, 1e12), st.floats(1.0, 10.0))
def test_more_work_never_takes_less_time(flops, size, more):
    sheet = device("h100-sxm")
    base = bound(sheet, flops, size, "bfloat16").seconds
    assert bound(sheet, flops * more, size, "bfloat16").seconds >= base
    assert bound(sheet, flops, size * more, "bfloat16").seconds >= base
    rate = flops / (base - sheet.launch)
    assert rate <= attainable(sheet, flops / size, "bfloat16") * (1 + 1e-6)


def test_a_ring_all_reduce_is_two_times_n_less_one_pieces():
    assert collectives.ring_all_reduce(WIRE, 4, 400.0) == pytest.approx(6 * (0.25 + 1.0))
    assert collectives.tree_all_reduce(WIRE, 8, 400.0) == pytest.approx(6 * (0.25 + 4.0))
    assert collectives.all_gather(WIRE, 4, 400.0) == pytest.approx(3 * 1.25)
    assert collectives.broadcast(WIRE, 5, 100.0) == pytest.approx(3 * 1.25)
    for cost in (collectives.all_reduce, collectives.all_to_all, collectives.reduce_scatter):
        assert cost(WIRE, 1, 400.0) == 0.0 and cost(WIRE, 4, 0.0) == 0.0


def test_small_messages_take_the_tree_and_large_ones_the_ring():
    tree, whole = collectives.tree_all_reduce, collectives.ring_all_reduce
    assert collectives.all_reduce(WIRE, 16, 1.0) == tree(WIRE, 16, 1.0)
    assert collectives.all_reduce(WIRE, 16, 1e6) == whole(WIRE, 16, 1e6)
    assert tree(WIRE, 16, 1.0) < whole(WIRE, 16, 1.0)
    assert whole(WIRE, 16, 1e6) < tree(WIRE, 16, 1e6)


def test_a_ring_of_a_large_tensor_shows_the_links_own_bandwidth():
    nvlink, size = link("nvlink4"), 8e9
    took = collectives.ring_all_reduce(nvlink, 8, size)
    assert collectives.bus_bandwidth(8, size, took) == pytest.approx(450e9, rel=0.01)


def test_the_fitted_latency_gives_back_the_measured_small_all_reduces():
    # 22.57 and 9.98 us for 512 bytes among 8 and 2 A100 (aiconfigurator): launch is what is left.
    eight = collectives.ring_all_reduce(link("nvlink3"), 8, 512.0)
    two = collectives.ring_all_reduce(link("nvlink3"), 2, 512.0)
    assert eight - two == pytest.approx(22.57e-6 - 9.98e-6, rel=0.02)


def test_energy_is_idle_power_and_a_share_of_the_rest():
    log = Log([Opened(0.0, {}), Span(2.0, "engine", "step", 1.0), Closed(4.0, "finished")])
    assert watts(PLAIN, 0.0, idle=60.0) == 60.0 and watts(PLAIN, 1.0, idle=60.0) == 300.0
    assert joules(PLAIN, log, idle=60.0) == pytest.approx(4 * 60 + 1 * 240)
    with pytest.raises(BadInput, match="power is not known"):
        watts(device("a40"), 0.5, idle=10.0)
    assert math.isfinite(watts(device("h100-sxm"), 2.0, idle=70.0))
