"""The modelled executor: tokens from seed and position alone, time from the roofline."""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.hardware.device import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.modelled_executor import build
from engine.inference.executors.modelled import Modelled
from engine.inference.requests.rows import Rows
from engine.inference.requests.step import Movements, Step


def built(**choice):
    config = InferenceConfig(
        model="llama-3.1-8b", dtype="bfloat16", executor=Modelled(**choice), pages=1000
    )
    return build(config, config.executor)


def decode(rows: Rows, count: int, context: int = 100, **fields) -> Step:
    at = np.arange(count)
    return Step(
        number=0,
        rows=rows,
        requests=[],
        rows_B=at,
        starts_B=np.full(count, context - 1, np.int32),
        queries_B=np.ones(count, np.int32),
        sample_rows_S=at,
        sample_from_S=at,
        decodes=count,
        prefill_tokens=0,
        **fields,
    )


@pytest.fixture
def rows():
    found = Rows(64, 16)
    found.seed[:] = np.arange(64) + 7
    found.known[:] = 100
    return found


def test_tokens_depend_on_seed_and_position_and_nothing_else(rows):
    executor = built().executor
    first = executor.execute(decode(rows, 8)).tokens_S
    assert np.array_equal(first, executor.execute(decode(rows, 32)).tokens_S[:8])
    assert len(set(executor.execute(decode(rows, 64)).tokens_S.tolist())) > 60
    rows.known[3] += 1
    changed = executor.execute(decode(rows, 8)).tokens_S != first
    assert changed.tolist() == [False] * 3 + [True] + [False] * 4
    assert first.dtype == np.int32 and first.min() >= 0 and first.max() < 128_256


def test_a_step_takes_its_roofline_time_and_the_overheads_the_config_states(rows):
    bare = built(per_step=0.0).executor
    told = built(per_step=0.25, per_sequence=0.5).executor
    step = decode(rows, 4)
    assert told.execute(step).seconds == pytest.approx(bare.execute(step).seconds + 0.25 + 4 * 0.5)
    assert bare.execute(step).seconds == pytest.approx(sum(o.seconds for o in bare.describe(step)))


def test_reached_shares_stretch_the_roofs_they_name(rows):
    full, half = (built(per_step=0.0, memory=m).executor for m in (1.0, 0.5))
    launches = sum(full.cost.launches)
    step = decode(rows, 1)
    plain, slow = (e.execute(step).seconds - launches for e in (full, half))
    assert slow == pytest.approx(2 * plain)
    sheet = device("h100-sxm")
    assert Modelled(arithmetic=0.5).calibrated(sheet).reached("bfloat16") == 0.5 * 989e12
    assert Modelled().calibrated(sheet) == sheet


def test_swapped_pages_cross_the_host_link_and_copied_ones_stay(rows):
    executor = built(per_step=0.0).executor
    base = executor.execute(decode(rows, 1)).seconds
    pairs = np.zeros((10, 2), np.int32)
    size = 10 * executor.facts.bytes_per_page
    link = executor.host
    swapped = executor.execute(decode(rows, 1, moves=Movements(swap_out=pairs))).seconds
    assert swapped - base == pytest.approx(link.latency + size / link.bandwidth)
    copied = executor.execute(decode(rows, 1, moves=Movements(copies=pairs))).seconds
    assert copied - base == pytest.approx(2 * size / 3.35e12)
    both = executor.execute(decode(rows, 1, moves=Movements(swap_out=pairs, swap_in=pairs))).seconds
    assert both - base == pytest.approx(2 * (swapped - base))


def test_it_runs_under_a_virtual_clock_that_it_leaves_to_the_engine(rows):
    made = built()
    made.executor.execute(decode(rows, 4))
    assert isinstance(made.clock, VirtualClock) and made.clock.now() == 0.0
    assert made.executor.facts.device == "H100 SXM" and made.executor.facts.layers == 32


def test_what_does_not_fit_the_device_is_refused_with_the_sizes():
    config = InferenceConfig(model="llama-3.1-70b", dtype="bfloat16", executor=Modelled())
    with pytest.raises(BadInput, match=r"141 GB of weights.*do not fit its 80 GB.*larger device"):
        build(config, config.executor)


def test_an_unknown_device_and_a_dtype_without_a_peak_are_refused():
    for name, more in (("abacus", "among"), ("cuda", "executor=real")):
        with pytest.raises(BadInput, match=f"no data sheet.*{more}"):  # before anything is built
            update(InferenceConfig(executor=Modelled()), {"executor.device": name})
    with pytest.raises(BadInput, match="no bfloat16 peak"):
        built(device="v100-sxm")
