"""Thinking while reading: equal to one masked forward at any pace; who sees what; errors."""

from functools import partial

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.reasoning.streaming_thinking.policies import Arrived, Batch, Streaming
from engine.reasoning.streaming_thinking.streaming_thinking import Reader
from engine.reasoning.streams.caches import StreamCaches
from engine.reasoning.streams.loop import go, open_streams, sessions_of
from engine.reasoning.streams.reference import from_scratch
from engine.reasoning.streams.script import while_reading
from tests.engine.reasoning.streams.stream_models import loaded_for, reading

PASS = 0.001


def read_through(config, words, *, family="qwen3", plain=False, problems=None, right=True):
    """Readers that are over, saying the right thoughts (`right`) or their own; and the events."""
    loaded, events = loaded_for(config, family, plain=plain), []
    clock, problems = VirtualClock(), problems or config.drawn()
    thoughts = "".join(problems[0].thoughts) if right else ""
    forced = words.encode("think", thoughts)
    readers = readers_of(config, loaded, words, clock, events.append, problems[:1], forced)
    go(readers, readers[0].caches, clock, lambda now: None, PASS)
    return loaded, readers[0], events


def readers_of(config, loaded, words, clock, emit, problems, forced=()):
    caches = StreamCaches(loaded, clock, emit, tell=False)
    return sessions_of(config, partial(Reader, forced=forced), words, caches, problems)


def scratch(loaded, reader, upto):
    script = while_reading(reader.input, reader.said[:-1], upto, reader.config.apart)
    logits = from_scratch(loaded.model.config, dict(loaded.model.weights), script)
    return logits[len(reader.input) :]


def own_clause(reader):
    """What each thought token may see, from the clauses alone."""
    ends = np.cumsum([len(clause) for clause in reader.problem.clauses])
    thoughts = [len(thought) for thought in reader.problem.thoughts]
    return np.repeat(ends, thoughts).tolist()


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
@pytest.mark.parametrize("between", [0.0, 0.5, 3.0, 20.0])
def test_streaming_is_one_forward_with_the_streaming_mask(between, plain):
    config, words = reading(pace=between * PASS)
    loaded, reader, _ = read_through(config, words, plain=plain)
    assert reader.upto == own_clause(reader)
    want = scratch(loaded, reader, own_clause(reader))
    assert np.abs(np.array(reader.logits) - want).max() < 1e-4
    assert reader.over and reader.text == "".join(reader.problem.thoughts)


@pytest.mark.parametrize("policy", ["batch", "arrived"])
def test_where_the_input_is_whole_it_is_batch_thinking(policy):
    config, words = reading(policy=policy)
    loaded, reader, _ = read_through(config, words)
    want = scratch(loaded, reader, [len(reader.input)] * len(reader.upto))
    assert np.abs(np.array(reader.logits) - want).max() < 1e-4


def test_positions_that_shift_are_noticed():
    config, words = reading(shifting=True)
    loaded, reader, _ = read_through(config, words)
    want = scratch(loaded, reader, own_clause(reader))
    assert np.abs(np.array(reader.logits) - want).max() > 1e-2


def test_a_later_letter_changes_no_bit_of_an_earlier_thought():
    config, words = reading()
    problem = config.drawn()[0]
    changed = list(problem.clauses)
    changed[2] = changed[2].translate(str.maketrans("0123456789+-", "1234567890-+"))
    other = type(problem)("other", "".join(changed), "", tuple(changed), problem.thoughts)
    one, two = (
        np.array(read_through(config, words, problems=[each])[1].logits)
        for each in (problem, other)
    )
    before = len(problem.thoughts[0]) + len(problem.thoughts[1])
    assert (one[:before] == two[:before]).all()
    assert (one[before:] != two[before:]).any(-1).all()


def test_thoughts_are_the_same_at_any_pace_and_begin_with_their_clause():
    said, onset = [], []
    for between in (0.0, 2.0, 9.0):
        config, words = reading(pace=between * PASS)
        _, reader, events = read_through(config, words)
        said.append(np.array(reader.logits))
        seen = [e for e in events if type(e) is Level and e.name.startswith("sees/read:")]
        places = np.cumsum([0, *map(len, reader.problem.clauses)])
        assert {(e.name, e.value) for e in seen} == {
            (f"sees/read:{clause[:1].replace('?', 'question')}", float(place))
            for clause, place in zip(reader.problem.clauses, places, strict=False)
        }
        joins = [e.time for e in events if type(e) is Mark and e.name == "join"]
        due = between * PASS * (places[1:] - 1)
        assert all(at >= when - 1e-12 for at, when in zip(joins, due, strict=True))
        onset.append(joins[0])
    assert np.abs(said[0] - said[1]).max() < 1e-4
    assert np.abs(said[0] - said[2]).max() < 1e-4
    assert onset == sorted(onset)


def test_policies():
    ends = [5, 10, 13]
    assert [Streaming().sees(1, ends, n) for n in (9, 10, 13)] == [None, 10, 10]
    assert [Arrived().sees(1, ends, n) for n in (9, 10, 13)] == [None, 10, 13]
    assert [Batch().sees(1, ends, n) for n in (9, 12, 13)] == [None, None, 13]
    assert Streaming().sees(7, ends, 13) == 13  # who thinks on sees what there is


def test_several_problems_end_each_by_itself_and_give_their_pages_back():
    config, words = reading(problems=3)
    loaded, events, clock = loaded_for(config), [], VirtualClock()
    readers = readers_of(config, loaded, words, clock, events.append, config.drawn())
    go(readers, readers[0].caches, clock, lambda now: None, PASS)
    assert all(reader.over for reader in readers)
    assert readers[0].caches.cache.held == 0
    answers = {e.lane for e in events if type(e) is Mark and e.name == "verdict"}
    assert answers == {"think0", "think1", "think2"}


def test_what_cannot_be_is_told():
    config, words = reading(apart=4, policy="batch")
    with pytest.raises(BadInput, match="begin it later"):
        read_through(config, words)
    config, words = reading(apart=250)
    with pytest.raises(BadInput, match="of a model that has 256"):
        read_through(config, words)
    config, words = reading()
    loaded = loaded_for(config)
    readers = readers_of(config, loaded, words, VirtualClock(), lambda e: None, config.drawn())
    readers[0].caches.cache.pool.take(readers[0].caches.cache.pool.free - 2)
    with pytest.raises(BadInput, match="pages needed"):
        go(readers, readers[0].caches, VirtualClock(), lambda now: None, PASS)
    with pytest.raises(BadInput, match="no entry"):
        open_streams(update(config, {"model": "stdlib-draft-1m"}))
