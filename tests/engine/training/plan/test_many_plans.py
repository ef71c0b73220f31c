"""Random sizes of every schedule: whole, in order, without deadlock, within the published memory.

5,000 of them with --full, drawn by ranks, microbatches and chunks.
"""

import numpy as np
import pytest

from engine.core.config import kinds
from engine.training.plan.actions import Plan
from engine.training.plan.check import check
from engine.training.plan.columns import F, columns
from engine.training.plan.memory import peaks
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from tests.engine.training.plan.plans import MADE, lowered

FEW, MANY = 60, 5000


def published(kind: str, p: int, m: int, v: int, rank: int) -> float:
    """Activations (of a rank's whole layers) that a rank may hold, as the papers have it.

    GPipe (1811.06965) keeps all; 1F1B (2104.04473) those of the ranks after it; interleaved its
    warm-up of 2 (p - rank - 1) + (v - 1) p + 1 chunks; H1, H2 and the search within their limits
    (2401.10241) p, 2 p - 1 and the one given; ZB-V (2405.15362) p.
    """
    bound = {
        "gpipe": m, "1f1b": p - rank, "zb_h1": p, "zb_h2": 2 * p - 1, "zb_v": p,
        "zero_bubble_search": p, "zb_v_greedy": p,
        "interleaved_1f1b": (2 * (p - rank - 1) + (v - 1) * p + 1) / v,
    }[kind]  # fmt: skip
    return min(float(m), float(bound))


def drawn(seed: int) -> tuple[str, Plan, Pipe, int]:
    draw = np.random.default_rng([19, seed])
    kind = MADE[seed % len(MADE)]
    p, m, v = int(draw.integers(1, 9)), int(draw.integers(1, 25)), int(draw.integers(1, 5))
    times = [float(t) for t in draw.uniform(0.2, 2.0, 3)]
    policy = (
        Interleaved(chunks=v) if kind == "interleaved_1f1b" else kinds(PipelineSchedule)[kind]()
    )
    m = -(-m // p) * p if kind == "interleaved_1f1b" else m
    limit = float(p) if kind == "zero_bubble_search" else float("inf")
    pipe = Pipe(p, m, *times, limit=limit)
    return kind, policy.plan(pipe), pipe, v


@pytest.mark.parametrize("part", range(5))
def test_a_schedule_of_any_size_is_right(part, full):
    count = (MANY if full else FEW) // 5
    for seed in range(part * count, (part + 1) * count):
        kind, plan, pipe, v = drawn(seed)
        assert check(plan) == [], (seed, kind)
        assert check(lowered(plan)) == [], (seed, kind)
        table = columns(plan)
        assert int((table.kind == F).sum()) == plan.stages * pipe.microbatches
        for rank, peak in enumerate(peaks(table, max(1, plan.chunks))):
            most = published(kind, pipe.ranks, pipe.microbatches, v, rank)
            assert peak <= most + 1e-9, (seed, kind, rank, peak, most)
