"""Two phases of one engine on one device: alone as fast as all of it, together never more than it
has, and nobody is lost where rows move, pages run out or requests are aborted in flight."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.measure import served
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.hardware.split_device import Work, side_by_side
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.phases import Phases
from engine.inference.policies.batching.proactive_split import ProactiveSplit
from engine.inference.policies.batching.side_by_side import FixedSplit, ReactiveSplit, Seen
from engine.inference.policies.ordering.shortest_first import ShortestFirst
from engine.inference.run import run
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.synthetic import Lengths
from tests.engine.inference.audit import audit
from tests.engine.inference.small import engine, request, serve

CONFIG = InferenceConfig(
    model="llama-3.1-8b", dtype="bfloat16", executor=Modelled(device="a100-sxm-80gb"),
    workload=Poisson(
        count=12, rate=4.0, prompt=Lengths(median=1200, spread=0.5, longest=3000),
        output=Lengths(median=12, spread=0.5, longest=30),
    ),
    pages=4000, step_tokens=1024, batching=ProactiveSplit(),
)  # fmt: skip
HOW = ProactiveSplit(), FixedSplit(), FixedSplit(share=0.05), ReactiveSplit()


def drawn(seed: int) -> Work:
    rng = np.random.default_rng(seed)
    return Work(rng.exponential(1e-3, 6), rng.exponential(1e-3, 6), float(rng.exponential(1e-4)))


def times(changes: dict):
    log = Run.execute(run, update(CONFIG, changes)).log
    return [(one.tokens, one.ended) for one in served(log).values()], log


def test_a_request_that_is_alone_takes_the_time_of_an_undivided_device():
    sparse = {"workload.count": 4, "workload.rate": 0.2}
    ours, _ = times(sparse)
    theirs, _ = times({**sparse, "batching": "decode_first"})
    for (mine, ended), (other, over) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose([*mine, ended], [*other, over], rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_both_never_draw_more_than_the_device_has_nor_are_faster_than_alone(seed):
    steps = drawn(seed), drawn(seed + 1000)
    for share in np.linspace(0.05, 0.95, 19):
        both = side_by_side(steps, float(share), 2.0)
        pairs = list(zip(steps, both, strict=True))
        assert sum(work.reading_O.sum() / seconds for work, seconds in pairs) <= 1 + 1e-9
        assert sum(work.computing_O.sum() / seconds for work, seconds in pairs) <= 1 + 1e-9
        assert all(seconds >= work.seconds() - 1e-12 for work, seconds in pairs)


def test_more_units_pay_less_and_less_once_reading_binds():
    work = Work(np.array([1.0]), np.array([1.5]), 0.0)
    shares = 0.1, 0.5, 0.9
    seconds = [side_by_side((work, None), share, 2.0)[0] for share in shares]
    assert seconds[0] == pytest.approx(10.0)  # arithmetic binds
    assert seconds[1:] == pytest.approx([2.0, 1.5])


@pytest.mark.parametrize("filled", [0.1, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_the_split_stands_while_the_work_does_and_moves_once_when_that_steps(seed, filled):
    how, share, seen = ProactiveSplit(), 0.5, []
    small, large = drawn(seed + 1000), drawn(seed + 2000)
    for turn in range(24):  # the decode steps become other ones half way
        share = how.split((drawn(seed), small if turn < 12 else large), Seen(share, filled, 0.0))
        seen.append(share)
    changes = np.flatnonzero(np.diff(seen)) + 1
    assert set(changes.tolist()) <= {12} and 0 < share < 1


def test_the_second_phase_keeps_its_slack_where_any_split_lets_it():
    how = ProactiveSplit(still=0.0)
    prefill = Work(np.array([0.2]), np.array([0.01]), 0.0)
    decode = Work(np.array([0.002]), np.array([0.01]), 0.0)
    share = how.split((prefill, decode), Seen(0.9, 0.1, 0.0))
    assert side_by_side((prefill, decode), share, how.reach)[1] <= 1.1 * decode.seconds()
    assert side_by_side((prefill, decode), share + how.stride, how.reach)[1] > 1.1 * 0.01
    share = how.split((prefill, decode), Seen(0.9, 0.9, 0.0))  # a full cache: answers come first
    assert side_by_side((prefill, decode), share, how.reach)[0] <= 1.3 * prefill.seconds()
    assert side_by_side((prefill, decode), share - how.stride, how.reach)[0] > 1.3 * 0.2


def test_ageing_lets_a_long_prompt_that_waited_go_before_a_short_one():
    long, short = request(40, max_tokens=4), request(10, max_tokens=90)
    long.arrival, short.arrival = 1.0, 3.0
    for ageing, first in ((0.0, short), (10.0, short), (20.0, long)):
        how = ShortestFirst(foresight=False, ageing=ageing)
        assert min((long, short), key=lambda one: how.key(one, None)) is first


def test_a_reactive_split_follows_the_last_decode_step():
    how, steps = ReactiveSplit(target=0.02), (drawn(1), drawn(2))
    assert how.split(steps, Seen(0.5, 0.1, took=0.03)) == pytest.approx(0.45)
    assert how.split(steps, Seen(0.5, 0.1, took=0.01)) == pytest.approx(0.55)


@pytest.mark.parametrize("how", HOW, ids=lambda how: how.kind)
@pytest.mark.parametrize("pages", [200, 18])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_a_plain_engine_whatever_the_two_steps_take(how, pages, seed):
    def job():
        return [
            request(5 + 4 * n % 31, n, max_tokens=3 + 5 * n % 17, n=1 + n % 2) for n in range(9)
        ]

    truth = serve(engine(pages=200)[0], job())
    held, events = engine(pages=pages, batching=how)
    work = np.random.default_rng(seed)
    both = Phases(held, how, lambda step, seconds: drawn(int(work.integers(1 << 30))))
    made = job()
    for one in made:
        held.add(one)
    while held.busy:
        assert both.step()
        audit(held)
    assert [one.generated.tolist() for one in made] == truth
    lanes = {event.lane for event in events if isinstance(event, Span) and event.name == "step"}
    assert lanes == {"prefill", "decode"}
    starts = [event.start for event in events if isinstance(event, Span)]
    assert min(starts) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_who_is_aborted_or_forked_in_flight_leaves_the_others_alone(seed):
    draw = np.random.default_rng(seed)
    made = [request(4 + 5 * n, n, max_tokens=12) for n in range(8)]
    truth = serve(engine(pages=200)[0], [request(4 + 5 * n, n, max_tokens=12) for n in range(8)])
    held, _ = engine(pages=40, batching="fixed_split")
    both = Phases(held, FixedSplit(), lambda step, seconds: drawn(int(draw.integers(1 << 30))))
    for one in made:
        held.add(one)
    while held.busy:
        if draw.random() < 0.1:
            held.abort(made[int(draw.integers(len(made)))].id)
        if draw.random() < 0.1:
            held.fork(made[int(draw.integers(len(made)))].id)
        both.step(held.clock.now() + 0.003)
        audit(held)
    for one, answer in zip(made, truth, strict=True):
        assert one.over
        assert one.state == "aborted" or one.generated.tolist() == answer


def test_the_device_is_busier_than_in_turns_and_the_share_is_told():
    ours, log = times({})
    assert len(ours) == 12 and all(ended for _, ended in ours)
    shares = [event.value for event in log.of(Level) if event.name == "prefill_share"]
    assert shares and all(0.0 <= share <= 1.0 for share in shares)
    spans = [event for event in log.of(Span) if event.name == "step"]
    apart = {lane: [s for s in spans if s.lane == lane] for lane in ("prefill", "decode")}
    for lane in apart.values():  # one step of a phase at a time
        assert all(b.start >= a.time - 1e-12 for a, b in zip(lane, lane[1:], strict=False))
    assert any(
        p.start < d.time and d.start < p.time for p in apart["prefill"] for d in apart["decode"]
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"executor.tensor_parallel": 2}, "one rank"),
        ({"speculation": {"kind": "ngram"}}, "leave speculation out"),
    ],
)
def test_what_is_not_modelled_is_refused(changes, words):
    with pytest.raises(BadInput, match=words):
        Run.execute(run, update(CONFIG, changes))


def test_a_fleet_refuses_split_devices():
    with pytest.raises(BadInput, match="do not split"):
        FleetConfig(engine=CONFIG).check()
