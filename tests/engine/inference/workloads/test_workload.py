"""Workloads: the same seed gives the same requests; equal prefixes are equal tokens."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.config import from_dict, kinds, update
from engine.core.errors import BadInput
from engine.core.limits import changed
from engine.inference import traffic
from engine.inference.requests.request import Sampling
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.prompts import Prompts
from engine.inference.workloads.shared_prefix import SharedPrefix
from engine.inference.workloads.steady import Steady
from engine.inference.workloads.synthetic import Lengths, arrivals, split, swung, tokens
from engine.inference.workloads.trace import FromTrace
from engine.inference.workloads.traces.read import load
from engine.inference.workloads.uniform import Uniform
from engine.inference.workloads.workload import Source, Workload

SOURCE = Source(vocab=500, context=10_000, sampling=Sampling(temperature=0.5))
LITERAL = ("prompts", "replay")  # nothing in them is drawn
SPEAKING = Source(500, 10_000, Sampling(), encode=lambda text: [len(w) for w in text.split()])


def test_every_kind_gives_the_same_requests_for_the_same_seed_and_others_for_another():
    for kind, made in kinds(Workload).items():
        first, again, other = (made().requests(SPEAKING, seed) for seed in (3, 3, 4))
        assert len(first) == len(again) > 0
        for a, b in zip(first, again, strict=True):
            assert np.array_equal(a.prompt, b.prompt) and a.arrival == b.arrival
            assert a.sampling == b.sampling and a.prompt.dtype == np.int32
        assert [r.arrival for r in first] == sorted(r.arrival for r in first)
        if kind not in LITERAL:
            assert any(
                not np.array_equal(a.prompt, b.prompt) for a, b in zip(first, other, strict=True)
            )


def test_prompts_stay_inside_the_vocabulary_and_answers_have_their_length():
    for request in Poisson(count=50).requests(SOURCE, 0):
        assert request.prompt.min() >= 0 and request.prompt.max() < 500
        assert request.sampling.ignore_eos and request.sampling.max_tokens >= 1
        assert request.sampling.temperature == 0.5, "the rest is the run's own sampling"


def test_steady_requests_come_at_once_with_nothing_in_common():
    made = Steady(count=5, prompt=64, output=7).requests(SOURCE, 1)
    assert [(len(r.prompt), r.sampling.max_tokens, r.arrival) for r in made] == [(64, 7, 0.0)] * 5
    assert len({tuple(r.prompt[:8]) for r in made}) == 5


def test_poisson_arrivals_come_at_their_rate_and_the_first_user_asks_most():
    made = Poisson(count=4000, rate=20.0, users=3, urgent=0.25).requests(SOURCE, 0)
    assert made[-1].arrival == pytest.approx(4000 / 20.0, rel=0.05)
    asked = [sum(r.user == f"u{k}" for r in made) for k in range(3)]
    assert asked[0] > 1.7 * asked[1] > 1.7 * asked[2] > 0
    assert sum(r.priority for r in made) / 4000 == pytest.approx(0.25, abs=0.03)
    assert {r.arrival for r in Poisson(count=9, rate=0.0).requests(SOURCE, 0)} == {0.0}


@pytest.mark.parametrize("mixed", [True, False])
def test_requests_of_a_group_share_exactly_their_prefix(mixed):
    workload = SharedPrefix(
        groups=3, per_group=4, prefix=Lengths(median=40), suffix=Lengths(median=9), mixed=mixed
    )
    made = workload.requests(SOURCE, 0)
    by_prefix: dict[tuple, list] = {}
    for request in made:
        by_prefix.setdefault(tuple(request.prompt[:40]), []).append(tuple(request.prompt[40:]))
    assert sorted(map(len, by_prefix.values())) == [4, 4, 4]
    suffixes = [suffix for group in by_prefix.values() for suffix in group]
    assert len(set(suffixes)) == 12 and {len(s) for s in suffixes} == {9}
    runs = sum(
        not np.array_equal(a.prompt[:40], b.prompt[:40])
        for a, b in zip(made, made[1:], strict=False)
    )
    assert (runs > 2) if mixed else (runs == 2)


def test_arrivals_that_swing_cost_the_periods_that_they_are_in():
    times = swung(np.array([30.0, 90.0, 6e13]), swing=0.9, period=60.0)
    assert times == pytest.approx([30.0, 90.0, 6e13])  # half a period: the rate has made up


@pytest.mark.parametrize("knobs", ["prompt.shortest=9 prompt.longest=8", "shortest=9 longest=8"])
def test_lengths_above_the_longest_are_refused(knobs):
    told = dict(each.split("=") for each in knobs.split())
    made = update((Poisson if "prompt" in knobs else Uniform)(), told)
    with pytest.raises(BadInput, match="shortest 9 is above longest 8"):
        made.requests(SOURCE, 0)


def test_lengths_scatter_about_their_median_and_are_cut_at_both_ends():
    random = np.random.default_rng(0)
    drawn = Lengths(median=100, spread=1.0, shortest=20, longest=400).draw(random, 5000)
    assert np.median(drawn) == pytest.approx(100, rel=0.05)
    assert drawn.min() == 20 and drawn.max() == 400
    assert set(Lengths(median=7).draw(random, 10)) == {7}


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(1, 200_000))
def test_a_token_depends_on_its_seed_stream_and_place_alone(seed, stream, vocab):
    whole = tokens(seed, stream, np.arange(50), vocab)
    part = tokens(seed, stream, np.arange(20, 30), vocab)
    assert np.array_equal(whole[20:30], part) and whole.min() >= 0 and whole.max() < vocab
    several = split(seed, np.array([5, 50]), vocab, np.array([stream, stream]))
    assert np.array_equal(several[1], whole) and np.array_equal(several[0], whole[:5])


def test_token_numbers_are_spread_evenly():
    drawn = tokens(0, np.arange(300)[:, None], np.arange(300)[None], 16).ravel()
    counts = np.bincount(drawn, minlength=16)
    assert counts.min() > 0.95 * counts.mean() and counts.max() < 1.05 * counts.mean()
    assert arrivals(np.random.default_rng(0), 3, 0.0).tolist() == [0.0, 0.0, 0.0]


def test_prompts_are_what_the_person_wrote_and_need_a_tokenizer():
    made = Prompts(texts=("a bb", "ccc"), repeat=2, gap=0.5).requests(SPEAKING, 0)
    assert [r.prompt.tolist() for r in made] == [[1, 2], [3], [1, 2], [3]]
    assert [r.arrival for r in made] == [0.0, 0.5, 1.0, 1.5]
    assert not made[0].sampling.ignore_eos
    with pytest.raises(BadInput, match="no tokenizer"):
        Prompts().requests(SOURCE, 0)
    with pytest.raises(BadInput, match="texts.0"):
        from_dict(Prompts, {"texts": [""]})


# Traces as workloads


def test_the_shipped_traces_are_what_their_generator_writes(tmp_path, root):
    traffic.write(tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (root / "datasets" / "workloads" / made.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_trace_keeps_lengths_and_moves_arrivals_with_its_speed():
    slow = FromTrace(count=20).requests(SOURCE, 0)
    fast = FromTrace(count=20, speed=4.0).requests(SOURCE, 0)
    shipped = load(FromTrace.path("azure-like.csv"), count=20).requests
    assert [len(r.prompt) for r in slow] == [t.prompt for t in shipped]
    assert [r.sampling.max_tokens for r in slow] == [t.answer for t in shipped]
    assert [r.arrival / 4 for r in slow] == pytest.approx([r.arrival for r in fast])
    assert slow[0].arrival == 0.0


@pytest.mark.parametrize("shrink", [1, 16])
def test_equal_blocks_of_a_trace_are_equal_tokens_and_others_differ(shrink):
    made = FromTrace(file="mooncake-like.jsonl", count=60, shrink=shrink).requests(SOURCE, 0)
    shipped = load(FromTrace.path("mooncake-like.jsonl"), count=60).requests
    block = 512 // shrink
    for i, (a, one) in enumerate(zip(made, shipped, strict=True)):
        assert len(a.prompt) == -(-one.prompt // shrink)
        for b, other in zip(made[:i], shipped[:i], strict=True):
            same = sum(x == y for x, y in zip(one.blocks, other.blocks, strict=False)) * block
            n = min(same, len(a.prompt), len(b.prompt))
            assert np.array_equal(a.prompt[:n], b.prompt[:n])
            rest = min(len(a.prompt), len(b.prompt)) - n
            if rest > 12:
                assert not np.array_equal(a.prompt[n : n + rest], b.prompt[n : n + rest])


def test_turns_of_a_conversation_begin_alike_with_and_without_a_tokenizer(tmp_path):
    said = [{"from": ("human", "gpt")[i % 2], "value": "word " * 30} for i in range(6)]
    (tmp_path / "talk.json").write_text(json.dumps([{"conversations": said}]))
    for source in (SOURCE, SPEAKING):
        made = FromTrace(file=str(tmp_path / "talk.json"), rate=2.0).requests(source, 0)
        assert len(made) == 3
        for a, b in zip(made, made[1:], strict=False):
            assert len(a.prompt) < len(b.prompt) and a.arrival < b.arrival
            assert np.array_equal(a.prompt, b.prompt[: len(a.prompt)])
        assert made[0].user == made[1].user != ""


def test_a_trace_that_is_not_there_is_answered_with_the_shipped_ones():
    with pytest.raises(BadInput, match=r"none.csv.*azure-like.csv, mooncake-like.jsonl"):
        FromTrace(file="../none.csv").requests(SOURCE, 0)


@pytest.mark.parametrize(
    "knobs",
    [
        {"kind": "poisson", "count": 40, "prompt": {"median": 1000}},
        {"kind": "uniform", "count": 40, "shortest": 1000, "longest": 1000},
        {"kind": "steady", "count": 40, "prompt": 1000},
        {"kind": "shared_prefix", "groups": 1, "per_group": 40, "prefix": {"median": 1000}},
        {"kind": "agents", "count": 40, "first": {"median": 1000}},
        {"kind": "streamed", "count": 1, "chunks": 100, "spread": 0.0, "chunk": {"median": 50}},
        {"kind": "trace", "file": "mooncake-like.jsonl"},
    ],
    ids=lambda knobs: knobs["kind"],
)
def test_more_tokens_than_a_workload_may_hold_are_refused_before_they_are_made(knobs):
    made = from_dict(kinds(Workload)[knobs["kind"]], knobs)
    with changed(workload_tokens=30_000), pytest.raises(BadInput, match="over the limit workload"):
        made.requests(SOURCE, 0)


def test_prompts_made_in_parts_are_those_made_at_once(monkeypatch):
    lengths, streams = np.array([5, 900, 0, 70, 300, 1]), np.arange(6) * 7
    whole = split(3, lengths, 500, streams)
    monkeypatch.setattr("engine.inference.workloads.synthetic.AT_ONCE", 100)
    for ours, theirs in zip(split(3, lengths, 500, streams), whole, strict=True):
        assert np.array_equal(ours, theirs)
