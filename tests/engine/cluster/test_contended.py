"""Plans on clusters whose links are shared: closed forms, bytes, and what is refused."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from engine.cluster.contended import MOST, PASSES, play
from engine.cluster.pipeline import run
from engine.cluster.pipeline_contended import USE, averaged
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Move, Span
from engine.core.log import Log
from engine.core.run import Run
from engine.distributed.flows.collective_work import algorithms
from engine.hardware.cluster import cluster
from engine.hardware.link import link
from engine.training.pipeline.cluster import AllReduce, OnCluster, places
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.stage_cost import Traffic
from engine.training.plan.bubble import of_log
from engine.training.plan.times import timed

SIZE = 1e8
SENT = {"passes.boundary": SIZE, "passes.gradients": 0.0}


def config(**turned) -> PipelineConfig:
    dotted = {path.replace("__", "."): value for path, value in turned.items()}
    return update(PipelineConfig(), {"cluster.name": "selene", **SENT, **dotted})


def log(**turned) -> Log:
    return Run.execute(run, config(**turned)).log


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb_h1", "interleaved_1f1b"])
@pytest.mark.parametrize("blocking", [False, True])
def test_where_nothing_is_shared_it_is_the_clock_of_the_wires(schedule, blocking):
    """Two ranks: the one's port out carries what goes forward alone, the other's what comes back.
    Interleaved chunks send while the last message is under way, so theirs are not one by one."""
    turned = {"schedule": schedule, "ranks": 2, "wires__blocking": blocking}
    if schedule == "interleaved_1f1b":
        turned |= {"passes__boundary": 1.0}
    near = link("nvlink3")
    wires = {"wires.latency": near.latency, "wires.bandwidth": 0.8 * near.bandwidth}
    alone = update(config(**turned), {"cluster.name": "", **wires})
    assert log(**turned).duration == pytest.approx(Run.execute(run, alone).log.duration, rel=1e-9)


def test_replicas_that_share_an_adapter_wait_for_one_another():
    """Eight replicas of two stages, a node each, one adapter: eight messages share it."""
    far = link("infiniband-200")
    for adapters in (8, 4, 2, 1):
        sent = log(ranks=2, microbatches=1, cluster__replicas=8, cluster__adapters=adapters).of(
            Move
        )
        took = far.latency + (8 / adapters) * SIZE / (0.8 * far.bandwidth)
        assert len(sent) == 2 * 8
        assert [move.time - move.start for move in sent] == pytest.approx([took] * 16)


def test_the_gradients_sum_is_the_closed_form_of_its_algorithm():
    near, far = (link(name) for name in ("nvlink3", "infiniband-200"))
    near, far = (x.model_copy(update={"bandwidth": 0.8 * x.bandwidth}) for x in (near, far))
    each = algorithms("all_reduce")
    for kind in ("ring", "hierarchical", "tree", "halving_doubling"):
        found = log(
            ranks=1, microbatches=1, cluster__replicas=16, cluster__all_reduce=kind,
            passes__gradients=1e9,
        )  # fmt: skip
        spans = [span for span in found.of(Span) if span.name == "all_reduce"]
        assert len(spans) == 16
        wanted = each[kind].seconds(near, far, 16, 8, 1e9)
        assert max(s.stop - s.start for s in spans) == pytest.approx(wanted, rel=1e-9), kind
        plan = each[kind].transfers(16, 8)
        moved = sum(move.bytes for move in found.of(Move) if "gradients" in move.tag)
        assert moved == pytest.approx(sum(plan.sent(plan.pieces).values()) * 1e9 / plan.pieces)


def test_links_tell_their_use_and_moves_all_that_passed():
    found = log(cluster__name="ethernet-pods", cluster__replicas=4, passes__gradients=1e9)
    links = found.opened.facts["links"]
    carried, last = dict.fromkeys(links, 0.0), {}
    for level in found.of(Level):
        if level.name == USE:
            since, use = last.get(level.lane, (0.0, 0.0))
            carried[level.lane] += use * (level.time - since)
            last[level.lane] = level.time, level.value
            assert level.value <= links[level.lane] * (1 + 1e-9)
    out = sum(
        size for name, size in carried.items() if name.endswith(" out") and "block" not in name
    )
    assert out == pytest.approx(sum(move.bytes for move in found.of(Move)), rel=1e-6)
    assert all(use == pytest.approx(0) for _, use in last.values())
    told = {mark.name: mark.text for mark in found.of(Mark)}
    assert "gradients are summed by" in told["all-reduce"] and "ms" in told["all-reduce"]
    assert "busiest link" in told["links"]


def test_averages_keep_the_bytes():
    asked = config(cluster__name="ethernet-pods", cluster__replicas=4)
    done = play(asked, asked.job())
    rows = averaged(done.played.uses, done.end, most=1)
    assert len(rows) < len(done.played.uses)
    for channel in np.flatnonzero(done.carried):
        time, _, use = rows[rows[:, 1] == channel].T
        assert (use[:-1] * np.diff(time)).sum() == pytest.approx(done.carried[channel], rel=1e-9)


def test_gradients_on_the_links_slow_the_stages_that_still_send():
    """A stage that is done sums its gradients over the adapter that its neighbour still uses."""
    shared = {
        "cluster__name": "ethernet-pods", "cluster__replicas": 4, "cluster__neighbours": "stages",
        "cluster__adapters": 1, "ranks": 16, "microbatches": 8, "cluster__all_reduce": "ring",
    }  # fmt: skip
    free, busy = log(**shared), log(**shared, passes__gradients=4e9)
    assert of_log(busy).seconds > of_log(free).seconds * 1.02


def test_who_stands_next_to_whom_decides_what_leaves_the_node():
    asked = OnCluster(name="selene")
    near = places(asked, 4, 8, 1, 2)
    far = places(asked.model_copy(update={"neighbours": "stages"}), 4, 8, 1, 2)
    assert near.beside() == 4 and far.beside() == 1
    for found in (near, far):
        devices = {found.device(s, r, 0, t) for s in range(4) for r in range(8) for t in range(2)}
        assert devices == set(range(64))


def test_tensor_ranks_send_parts_and_sum_their_own_gradients():
    big = {"passes": "transformer", "passes.hidden": 1024, "passes.layers": 8, "passes.heads": 8,
           "passes.tensor": 4, "passes.data": 2, "ranks": 2, "microbatches": 4}  # fmt: skip
    asked = update(PipelineConfig(), {**big, "cluster.name": "selene"})
    found = Run.execute(run, asked).log
    share = asked.job().share
    sizes = {move.bytes for move in found.of(Move) if "mb=" in move.tag}
    assert sizes == {share.boundary}
    sums = [move.bytes for move in found.of(Move) if "gradients" in move.tag]
    assert sum(sums) == pytest.approx(2 * 2 * 4 * share.gradients)  # a ring of two, both stages
    assert share.sent > 0
    without = timed(asked.job().plan, asked.job().on_network().costs).end
    assert without < timed(asked.job().plan, asked.job().costs).end


WIDE = {"passes": "transformer", "passes.hidden": 1024, "passes.layers": 8, "passes.heads": 16,
        "passes.data": 1, "ranks": 1, "microbatches": 4, "cluster.name": "selene"}  # fmt: skip
WITHIN = {
    "tensor": {"passes.tensor": 4},
    "context": {"passes.tensor": 1, "passes.context": 2},
    "both": {"passes.tensor": 4, "passes.context": 2, "passes.recompute": "none"},
    "a ring that is waited for": {"passes.tensor": 4, "passes.context": 2, "passes.sequence": 256},
    "a ring between nodes": {"passes.tensor": 8, "passes.context": 2},
}


def passes_end(times) -> float:
    return float(times.stop[np.isin(times.columns.kind, PASSES)].max())


def wide(**turned) -> PipelineConfig:
    dotted = {path.replace("__", "."): value for path, value in turned.items()}
    return update(PipelineConfig(), {**WIDE, **dotted})


@pytest.mark.parametrize("name", WITHIN)
def test_what_devices_of_a_rank_give_one_another_is_the_closed_form_alone(name):
    asked = wide(**WITHIN[name])
    made = asked.job()
    done = play(asked, made)
    assert made.share.within[0].seconds > 0 or name == "context"
    assert passes_end(done.times[0]) == pytest.approx(
        passes_end(timed(made.plan, made.costs)), rel=1e-12
    )
    # All bytes are on the links: forward and backward of each microbatch, from every device.
    moved = sum(m.tensor + m.context for m in made.share.within) * made.plan.microbatches
    found = done.places
    out = sum(done.carried[2 * device] for device in range(found.devices))
    if name != "a ring between nodes":
        summed = sum(each.bytes for each in done.sent)
        sums = 2 * made.share.gradients * (found.context - 1) / found.context * found.devices
        assert summed == 0 and out == pytest.approx(moved * found.devices + sums)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb_h1", "interleaved_1f1b"])
def test_so_it_is_in_a_pipeline_whose_stages_have_a_node_each(schedule):
    asked = wide(schedule=schedule, ranks=2, passes__tensor=8)
    made = asked.job()
    whole = replace(made, share=replace(made.share, within=(Traffic(), Traffic())))
    assert play(asked, made).end == pytest.approx(play(asked, whole).end, rel=1e-12)


def test_a_slow_or_shared_link_of_a_rank_s_devices_slows_the_step():
    """Eight tensor ranks' rings of two nodes leave by as many adapters, or all by one; a tensor
    group that does not fit a node crosses one too."""
    took = {}
    for adapters in (8, 4, 1):
        asked = wide(passes__tensor=8, passes__context=2, passes__sequence=512,
                     cluster__adapters=adapters)  # fmt: skip
        done = play(asked, asked.job())
        took[adapters] = passes_end(done.times[0])
    made = asked.job()
    far = link("infiniband-200")
    alone = passes_end(timed(made.plan, made.costs))
    assert took[8] == pytest.approx(alone, rel=1e-12)
    ring = 4 * sum(moves.context for moves in made.share.within) / (0.8 * far.bandwidth)
    # The ring is all that is waited for beside: what is longer is seven rings of eight.
    assert took[1] - took[8] == pytest.approx(7 * ring, rel=1e-6)
    assert took[8] < took[4] < took[1]
    lanes = {level.lane for level in Run.execute(run, asked).log.of(Level) if level.name == USE}
    assert {"node 0 adapter 0 out", "node 1 adapter 0 in", "device 3 out"} <= lanes
    crossing = wide(passes__tensor=16)
    made = crossing.job()
    closed = passes_end(timed(made.plan, made.costs))
    assert passes_end(play(crossing, made).times[0]) > 2 * closed


@pytest.mark.parametrize(("turned", "says"), [
    ({"cluster__name": "selen"}, "did you mean selene"),
    ({"cluster__name": "ethernet-pods", "cluster__replicas": 512}, "2,048 devices asked for, it"),
    ({"cluster__adapters": 3}, "8 devices of a node do not divide among 3 adapters"),
    ({"cluster__replicas": 6, "cluster__all_reduce": "halving_doubling",
      "passes__gradients": 1e6}, "6 ranks are no power of two"),
    ({"cluster__replicas": 512, "cluster__all_reduce": "one_phase", "ranks": 6,
      "passes__gradients": 1e6}, f"at most {MOST:,} are played; take"),
])  # fmt: skip
def test_what_cannot_be_played_is_refused(turned, says):
    with pytest.raises(BadInput, match=says):
        log(**turned)


def test_every_all_reduce_can_be_chosen():
    assert set(get_args(AllReduce)) == {"fastest", *algorithms("all_reduce")}
    assert cluster("selene").devices == 3072
