"""Pipelines on real ranks: every schedule's gradients are one process's, and what ranks tell."""

import numpy as np
import pytest

from engine.core.events import Level, Span
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from tests.engine.training.plan.plans import MADE, lowered, made
from tests.engine.training.stages import pipelines

# On four ranks and, two by two, on two; counts that divide by nothing where the schedule allows it.
SIZES = [(4, 7), (4, 2), (2, 5), (2, 1)]


NAMES = [f"{kind} {ranks} {count}" for kind in MADE for ranks, count in SIZES]
BLOCKING = ["1f1b 4 5 blocking", "zb_v 2 3 blocking"]


def _case(number: int, name: str) -> dict:
    """A plan; those of two ranks are done on the first two and on the last two in turn."""
    kind, ranks, count, *more = name.split()
    plan = lowered(made(kind, int(ranks), int(count)))
    first = 2 * (number % 2) if len(plan.ranks) == 2 else 0
    return {"name": name, "plan": str(plan), "ranks": len(plan.ranks), "first": first,
            "count": plan.microbatches, "blocking": bool(more)}  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    return {name: _case(number, name) for number, name in enumerate(NAMES + BLOCKING)}


@pytest.fixture(scope="module")
def records(cases):
    """One launch for all of them: ranks take seconds to start."""
    return launch(pipelines.follow_plans, 4, list(cases.values()), limit=300)


@pytest.fixture(scope="module")
def truths(cases):
    counts = {case["count"] for case in cases.values()}
    return {count: pipelines.one_process(count) for count in counts}


@pytest.mark.parametrize("name", NAMES + BLOCKING)
def test_gradients_weights_and_losses_are_those_of_one_process(name, cases, records, truths):
    case = cases[name]
    loss, gradients, after = truths[case["count"]]
    found = {name: array for record in records for name, array in arrays(record, case["name"])}
    for name, expected in gradients.items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found[f"gradient/{name}"], expected, atol=1e-5 * scale, rtol=0)
        np.testing.assert_allclose(found[f"weight/{name}"], after[name], atol=1e-6, rtol=0)
    losses = np.concatenate(
        [v for r in records for k, v in arrays(r, case["name"]) if k == "losses"]
    )
    assert len(losses) == case["count"]
    assert losses.mean() == pytest.approx(loss, abs=1e-5)


def arrays(record, case):
    begin = f"{case}/"
    return [(k[len(begin) :], record.array(k)) for k in record.arrays if k.startswith(begin)]


def test_every_action_is_told_with_its_microbatch_and_stage(cases, records):
    spans = [event for event in merged(records) if isinstance(event, Span)]
    told = sorted((s.lane, s.name, s.tag) for s in spans if s.name in ("F", "B", "I", "W"))
    asked = []
    for case in cases.values():
        for rank, line in enumerate(case["plan"].splitlines()):
            for word in line.split():
                kind = word.lstrip("0123456789").rstrip("0123456789")
                if kind in ("F", "B", "I", "W"):
                    stage, _, number = word.partition(kind)
                    tag = f"mb={number} stage={stage}"
                    asked.append((f"rank {case['first'] + rank}", kind, tag))
    assert told == sorted(asked)
    assert all(s.start <= s.stop for s in spans)


def test_memory_of_each_kind_is_told_and_let_go(records):
    for record in records:
        levels = [event for event in record.events if isinstance(event, Level)]
        kinds = {level.name for level in levels}
        assert kinds >= {f"memory/{k}" for k in ("weights", "gradients", "activations", "buffers")}
        most = max(level.value for level in levels if level.name == "memory/activations")
        for name, held in arrays(record, "gpipe 4 7"):
            if name == "held":
                assert held[0] < most / 10  # activations: the microbatches' tokens alone
