"""Streamed inputs: how context comes, what replaces what, and that nothing else changes."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.events import Branch
from engine.core.measure import served
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.requests.request import Sampling
from engine.inference.run import run
from engine.inference.workloads.streamed import Streamed
from engine.inference.workloads.synthetic import Lengths
from engine.inference.workloads.workload import Source

SOURCE = Source(1000, 100_000, Sampling())
SMALL = Streamed(
    count=5, chunks=4, spread=0.0, chunk=Lengths(median=40, spread=0.3), gap=0.2,
    question=Lengths(median=5), listed=3, output=Lengths(median=3),
)  # fmt: skip
CONFIG = InferenceConfig(
    model="llama-3.1-8b", dtype="bfloat16", executor=Modelled(device="h100-sxm"), workload=SMALL,
    pages=200, max_running=8,
)  # fmt: skip


def by_query(workload: Streamed) -> dict[str, list]:
    found: dict[str, list] = {}
    for request in workload.requests(SOURCE, 0):
        found.setdefault(request.id, []).append(request)
    return found


def test_appended_context_grows_and_each_state_replaces_the_one_before() -> None:
    for states in by_query(SMALL).values():
        assert len(states) == 4
        for one, other in zip(states, states[1:], strict=False):
            assert other.replaces is one and one.arrival <= other.arrival
            assert np.array_equal(other.prompt[: len(one.prompt)], one.prompt)
        assert [one.sampling.max_tokens for one in states] == [1, 1, 1, 3]


def test_updated_context_changes_from_some_chunk_on() -> None:
    other_lengths = 0
    for states in by_query(update(SMALL, {"mode": "update"})).values():
        for one, other in zip(states, states[1:], strict=False):
            n = min(len(one.prompt), len(other.prompt))
            same = np.cumprod(one.prompt[:n] == other.prompt[:n]).sum()
            assert 5 <= same < n  # the question stays
            other_lengths += len(one.prompt) != len(other.prompt)
    assert other_lengths


def test_updates_leave_alone_the_part_of_the_list_that_is_kept() -> None:
    whole = update(SMALL, {"mode": "update", "kept": 0.7})
    for states in by_query(whole).values():
        for one, other in zip(states, states[1:], strict=False):
            n = min(len(one.prompt), len(other.prompt))
            assert np.cumprod(one.prompt[:n] == other.prompt[:n]).sum() > 5 + 2 * 15  # two of three


def test_without_streaming_the_last_state_comes_alone_at_the_same_time() -> None:
    whole = by_query(update(SMALL, {"streaming": False}))
    for name, states in by_query(SMALL).items():
        (alone,) = whole[name]
        assert alone.replaces is None and alone.arrival == states[-1].arrival
        assert np.array_equal(alone.prompt, states[-1].prompt)


@pytest.mark.parametrize(
    "first,expected",
    [("query", [0, 0, -1, -1]), ("most_chunks", [1, 4, 1, 4]), ("last_chunk", [0, 1, 0, 1]),
     ("oldest", [0, 5, -1, 4])],
)  # fmt: skip
def test_priorities(first: str, expected: list[int]) -> None:
    states = by_query(update(SMALL, {"first": first}))
    found = [states[q][n].priority for q in ("q0", "q1") for n in (0, -1)]
    assert found == expected


def test_what_waits_ends_when_its_input_goes_on_and_what_ran_is_found_again() -> None:
    quick = update(CONFIG, {"workload.rate": 100.0, "workload.gap": 0.001})
    for config in (CONFIG, quick):
        log = Run.execute(run, config).log
        lives = served(log)
        assert list(lives) == [f"q{n}" for n in range(5)]
        assert {one.outcome for one in lives.values()} == {"finished"}
        computed = sum(one.prefilled for one in lives.values())
        needed = sum(len(states[-1].prompt) for states in by_query(SMALL).values())
        assert computed <= needed + 16 * 4 * 5  # rest of a page for each state
    ends = [e for e in log if isinstance(e, Branch) and e.state == "aborted"]
    assert ends and all(e.why == "its input went on" for e in ends)


def test_a_lost_update_is_another_answer() -> None:
    states, lost = by_query(SMALL), by_query(update(SMALL, {"fault": "lost"}))
    assert all(len(lost[name][-1].prompt) < len(states[name][-1].prompt) for name in states)


def test_states_that_are_kept_are_requests_of_their_own() -> None:
    states, kept = by_query(SMALL), by_query(update(SMALL, {"fault": "kept"}))
    assert sum(map(len, kept.values())) == sum(map(len, states.values())) == len(kept)
    for name, own in states.items():
        assert np.array_equal(kept[name][-1].prompt, own[-1].prompt)
    assert all(one.replaces is None for each in kept.values() for one in each)


def test_times_between_chunks_have_their_mean_and_their_spread() -> None:
    random = np.random.default_rng(0)
    gaps = update(SMALL, {"gap": 0.2, "gap_spread": 1.0})._gaps(random, 20_000)
    assert np.isclose(gaps.mean(), 0.2, rtol=0.05)
    assert np.isclose(np.log(gaps).std(), 1.0, rtol=0.05)
