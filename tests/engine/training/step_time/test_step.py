"""A step's time: its parts, its schedule, what overlaps, what lifting a bound gives."""

from pathlib import Path

import numpy as np
import pytest

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.hardware.cost.constants import of_device
from engine.training.step_time.described import TrainingRun, read
from engine.training.step_time.host import Host
from engine.training.step_time.interval import interval, lifted
from engine.training.step_time.step import BYTES, PARTS, Prepared, step
from engine.training.step_time.wires import Wires, missed

RUN = TrainingRun()


def with_(**changes: object) -> TrainingRun:
    return update(RUN, {path.replace("__", "."): value for path, value in changes.items()})


def test_parts_are_the_step():
    told = step(with_(recipe__batch=32, split__pipeline=2, split__tensor=2, split__shard="none"))
    assert sum(told.parts.values()) == pytest.approx(told.seconds)
    assert told.parts["bubble"] > 0 and told.memory.total > 0


def test_one_device_waits_for_nobody():
    told = step(with_(cluster__devices=1))
    assert told.parts["collectives"] == told.parts["bubble"] == told.hidden == 0


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_pipelines_bubble_is_the_schedules(chunks):
    """Of even stages (p - 1) / (v m) of the passes; the head makes the last one longer."""
    run = with_(
        cluster__devices=4, split__pipeline=4, split__chunks=chunks, split__shard="none",
        recipe__batch=16, architecture={"vocab_size": 8},
    )  # fmt: skip
    told = step(run)
    busy = told.seconds - told.parts["bubble"] - told.parts["update"]
    assert told.parts["bubble"] / busy == pytest.approx(3 / (16 * chunks), rel=0.02)


def test_gathers_hide_behind_passes():
    run = with_(cluster__devices=64)
    beside, waits = step(run), step(update(run, {"recipe.overlap": False}))
    assert beside.hidden > 5 * beside.parts["collectives"] / 2 and waits.hidden == 0
    assert beside.seconds < waits.seconds
    inside = beside.hidden + beside.parts["collectives"]
    assert inside == pytest.approx(waits.parts["collectives"])


def test_a_ring_across_nodes_goes_by_shared_adapters():
    run = with_(cluster__devices=64, cluster__network="infiniband-200")
    wires = Wires.of(run.cluster, of_device("h100-sxm"), 1.0)
    big = 8e9
    assert wires.seconds("all_gather", 64, 1, big) == pytest.approx(7 / 8 * big / 2e11, rel=0.02)
    assert wires.seconds("all_gather", 8, 8, big) == pytest.approx(7 / 8 * big / 2.5e10, rel=0.02)
    assert wires.seconds("all_reduce", 1, 1, big) == 0


def test_lifting_all_leaves_nothing_and_one_its_part():
    prepared = Prepared(with_(split__pipeline=2, split__shard="none", recipe__batch=32))
    whole = prepared.at()[0]
    told = lifted(prepared)
    assert list(told.values()) == sorted(told.values())
    assert prepared.at(dict.fromkeys(prepared.at()[1], 0.0))[0] == 0
    assert told["products"] < whole - prepared.at()[1]["products"]  # and the bubble with them


def test_an_interval_is_wider_where_no_run_was_fitted():
    own = interval(Prepared(with_(cluster__device="a100-sxm-80gb")))
    other = interval(Prepared(with_(cluster__device="b200-sxm")))
    assert own.own and not other.own and other.deviation > own.deviation
    assert own.low < Prepared(with_(cluster__device="a100-sxm-80gb")).at()[0] < own.high
    assert sum(own.shares.values()) == pytest.approx(1, abs=0.05)


def test_the_linear_rule_spreads_a_step_as_sampling_does():
    """Parts drawn log-normally about what is told, each step put together anew."""
    run = with_(cluster__device="a100-sxm-80gb", cluster__devices=64, split__tensor=4)
    prepared = Prepared(run)
    seconds, told = prepared.at()[0], interval(prepared)
    spread = prepared.step.spread
    draws = np.random.default_rng(0).standard_normal((300, len(PARTS)))
    drawn = [
        prepared.at({p: np.exp(spread[p] * z) for p, z in zip(PARTS, row, strict=True)})[0]
        for row in draws
    ]
    sampled = np.hypot(np.log(np.array(drawn) / seconds).std(), spread["framework"])
    assert told.deviation == pytest.approx(sampled, rel=0.1)


def test_a_described_run_is_read(tmp_path: Path):
    file = tmp_path / "run.toml"
    file.write_text('model = "qwen3-8b"\n[recipe]\nsequence = 2048\n', encoding="utf-8")
    run = read(file)
    assert run.config().layers == 36 and run.recipe.sequence == 2048
    scaled = '[architecture]\nrope_scaling = {rope_type = "linear", factor = 2.0}\n'
    file.write_text('model = "llama-3.1-8b"\n' + scaled, encoding="utf-8")
    assert read(file).config().layers == 32
    file.write_text("[recipe]\nsequenc = 2048\n", encoding="utf-8")
    with pytest.raises(BadInput, match="run.toml: knob 'recipe.sequenc'"):
        read(file)


def test_what_does_not_divide_is_told():
    with pytest.raises(BadInput, match="do not divide 8 devices"):
        step(with_(split__tensor=16))
    with pytest.raises(BadInput, match="batch of 5 sequences"):
        step(with_(recipe__batch=5))
    with pytest.raises(BadInput, match="model 'llama-9'"):
        from_dict(TrainingRun, {"model": "llama-9"}).config()


def test_a_power_limit_slows_products_by_the_cube_root():
    usual, low = (
        Prepared(with_(cluster__device="h100-sxm", cluster__power=watts)).at()[1]
        for watts in (0, 350)
    )
    assert low["products"] / usual["products"] == pytest.approx(2 ** (1 / 3))
    assert low["rows"] == usual["rows"]


def test_a_compiler_fuses_rows_and_nothing_else():
    eager, fused = (Prepared(with_(recipe__compiled=each)).at()[1] for each in (False, True))
    assert eager["rows"] > 2 * fused["rows"] and eager["products"] == fused["products"]


def experts(**changes: object) -> TrainingRun:
    split = {"split__expert": 16, "split__shard": "none", "cluster__devices": 32}
    return update(with_(**{**split, **changes}), {"model": "qwen3-30b-a3b"})


def test_a_token_that_crosses_to_a_node_once_costs_fewer_bytes_than_a_copy_for_each_expert():
    wires = Wires.of(experts().cluster, of_device("h100-sxm"), 1.0)
    # Of 8 experts anywhere among two nodes: with probability 1 - 2^-8 one is over there, not 4.
    assert wires.crossing(16, 1, 8) == pytest.approx(2 * (1 - 0.5**8) / 8)
    assert wires.crossing(8, 1, 8) == 1.0  # nothing leaves the node
    copies, once = (step(experts(recipe__dispatch=kind)) for kind in ("copies", "once"))
    assert once.parts["collectives"] < 0.5 * copies.parts["collectives"]
    assert once.parts["rows"] < copies.parts["rows"]  # sorted twice less
    assert {**once.parts, "collectives": 0, "rows": 0} == {
        **copies.parts, "collectives": 0, "rows": 0,
    }  # fmt: skip


def test_a_token_of_few_groups_meets_few_nodes():
    """DeepSeek-V3's 8 experts of 4 of 8 groups, over 4 nodes of 2 groups each."""
    draw = np.random.default_rng(0)
    none = []
    for _ in range(4000):
        groups = draw.permutation(8)[:4]
        own = np.concatenate([np.arange(32) + 32 * g for g in groups])
        chosen = draw.permutation(own)[:8]
        none.append(not (chosen < 64).any())
    assert missed(4, 8, 4, 8) == pytest.approx(np.mean(none), abs=0.02)
    assert missed(4, 8, 4, 8) > missed(4, 8, 1, 1) == 0.75**8


def test_experts_gradients_are_summed_among_their_own_ranks():
    """Each device of a node has other experts: all of them cross by its own share of adapters,
    where a sum over all devices crosses once for the node."""
    run = experts(split__shard="optimizer")
    prepared = Prepared(run)
    numbers = sum(layer.inside for stage in prepared.stages for layer in stage)
    half = numbers / 2 * (BYTES[run.recipe.gradients] + 2)  # of two owners, there and back
    took = sum(prepared._ends(0, 0.0, np.ones(len(PARTS))))
    assert half / prepared.bench.wires.out < took < 1.5 * half / prepared.bench.wires.out


def test_expert_ranks_divide_tensor_ranks_too_where_replicas_are_too_few():
    """Tensor ranks then have rows of their own, and experts' ranks stand side by side."""
    tensor = {"split__tensor": 2, "split__sequence_parallel": True}
    wide, few = (Prepared(experts(**tensor, split__expert=ep)).bench for ep in (32, 16))
    assert wide.apart == 1 and few.apart == 2


def test_biases_of_experts_are_passes_of_their_own_where_each_has_its_product():
    together, each = (
        step(update(experts(), {"model": "gpt-oss-20b", "recipe.experts": kind}))
        for kind in ("together", "each")
    )
    assert each.parts["rows"] > together.parts["rows"]


def test_experts_messages_hide_behind_another_microbatchs_passes():
    waits, beside = (step(experts(recipe__expert_overlap=on)) for on in (False, True))
    assert beside.parts["collectives"] < waits.parts["collectives"]
    assert beside.hidden > waits.hidden


def test_a_node_is_as_large_as_the_devices_link_joins():
    rack = {"cluster__device": "gb200-sxm", "cluster__devices": 64}
    assert experts(**rack).cluster.joined() == 72 and experts().cluster.joined() == 8
    told = interval(Prepared(experts())).deviation, interval(Prepared(RUN)).deviation
    assert told[0] > told[1]  # no run of a model with experts was fitted


def test_each_experts_own_kernels_cost_the_host_time_that_a_grouped_one_does_not():
    small = {"recipe__sequence": 1024, "recipe__dtype": "float8"}
    together, each = (step(experts(recipe__experts=kind, **small)) for kind in ("together", "each"))
    assert each.parts["host"] > together.parts["host"] + 1e-3
    # A host that is waited for hides the gradients' sum, too.
    apart = {"host": 0, "bubble": 0, "collectives": 0}
    assert {**each.parts, **apart} == {**together.parts, **apart}
    long = {**small, "recipe__sequence": 65_536}  # whose work hides launches
    assert step(experts(recipe__experts="each", **long)).parts["host"] == 0


def test_a_host_that_waits_for_counts_cannot_launch_ahead():
    """Its launches of experts hide behind experts' work alone."""
    ahead, waits = (Host(rest=1.0, experts=3.0, waits=w) for w in (False, True))
    assert ahead.forward(1.0, busy=5.0, experts=2.0) == 0
    assert waits.forward(1.0, busy=5.0, experts=2.0) == 1
    assert ahead.backward(1.0, busy=5.0) == waits.backward(1.0, busy=5.0) == 3
