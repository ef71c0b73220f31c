"""What ranks tell of a plan, measured: a clock told it tells the same times again."""

import numpy as np
import pytest

from engine.core.events import Span
from engine.distributed.record import Record
from engine.training.pipeline.measured_costs import measured_costs
from engine.training.plan.columns import CODES
from engine.training.plan.times import Costs, timed
from engine.training.stages.program import said
from engine.training.stages.ranks import WAIT
from tests.engine.training.plan.plans import MADE, made

AFTER, SENT = 0.05, 0.3  # seconds


def told(plan, costs):
    """The spans of ranks that do exactly what the clock says, waits among them, and its times."""
    times, at, records = timed(plan, costs), 0, []
    for rank, actions in enumerate(plan.ranks):
        record, free = Record(rank), 0.0
        for action in actions:
            start, stop = times.start[at], times.stop[at]
            lane, tag = f"rank {rank}", said(action)
            if start > free + 1e-9:
                record.events.append(Span(start, lane, WAIT, free, tag=tag))
            record.events.append(Span(stop, lane, action.kind.value, start, tag=tag))
            free, at = stop + AFTER, at + 1
        records.append(record)
    return times, records


@pytest.mark.parametrize("kind", sorted(MADE))
def test_what_was_measured_gives_the_same_times(kind):
    plan = made(kind, 3, 4)  # larger ones take searches seconds to find
    draw = np.random.default_rng(1)
    even = Costs.even(plan, 1.0, 1.2, 0.8, SENT)
    after = np.full((len(CODES), plan.stages), AFTER)
    uneven = draw.uniform(0.8, 1.2, sum(map(len, plan.ranks)))
    times, records = told(plan, Costs(even.passes, even.transfers, after=after))
    costs = measured_costs(plan, records, together=False)
    again = timed(plan, costs)
    np.testing.assert_allclose(again.start, times.start, atol=1e-9)
    np.testing.assert_allclose(again.stop, times.stop, atol=1e-9)
    took = times.stop - times.start
    np.testing.assert_allclose(costs.own, took, atol=1e-9)
    times, records = told(
        plan, Costs(even.passes, even.transfers, after=after, own=uneven * took)
    )  # fmt: skip
    again = timed(plan, measured_costs(plan, records, together=False))
    np.testing.assert_allclose(again.stop, times.stop, atol=1e-9)
