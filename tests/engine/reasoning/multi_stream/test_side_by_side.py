"""Streams side by side: equal to one forward over all rows; in turns; reactions of both."""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.events import Mark, Span
from engine.reasoning.multi_stream.multi_stream import FORMS, SideBySide, TurnTaking
from engine.reasoning.streams.caches import StreamCaches
from engine.reasoning.streams.loop import go, sessions_of
from engine.reasoning.streams.reference import from_scratch
from engine.reasoning.streams.responses import of_events
from engine.reasoning.streams.script import in_rows, who_sees
from engine.tasks.running_sum import LAG, QUESTION, STREAMS, answers, sums, thoughts
from tests.engine.reasoning.streams.stream_models import loaded_for, side_by_side

ALL = "; ".join(f"{name}: {' '.join(STREAMS)}" for name in STREAMS)


def play(config, words, *, family="qwen3", plain=False):
    loaded, events, clock = loaded_for(config, family, plain=plain), [], VirtualClock()
    caches = StreamCaches(loaded, clock, events.append)
    sessions = sessions_of(config, FORMS[config.form], words, caches, config.drawn())
    go(sessions, caches, clock, lambda now: None, config.pass_s)
    return loaded, sessions, events


def distance(config, words, **how):
    loaded, sessions, _ = play(config, words, **how)
    worst = 0.0
    for session in sessions:
        tokens_RS = np.array([words.encode(name, session.said[name]) for name in STREAMS]).T
        script = in_rows(tokens_RS, who_sees(config.sees, STREAMS))
        want = from_scratch(loaded.model.config, dict(loaded.model.weights), script)
        have = np.array(session.logits).reshape(want.shape)
        worst = max(worst, float(np.abs(want - have).max()))
    return worst


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
@pytest.mark.parametrize("sees", ["", "think: read; say: ask think", ALL])
def test_rows_are_one_forward_with_the_mask_of_the_paper(sees, plain):
    config, words = side_by_side(sees=sees, problems=2)
    assert distance(config, words, plain=plain) < 1e-4


def test_a_look_into_the_own_row_is_noticed():
    config, words = side_by_side(same_row=True)
    assert distance(config, words) > 1e-3


def test_streams_say_what_the_model_chose_after_the_row_before():
    config, words = side_by_side()
    _, (session,), _ = play(config, words)
    for number, name in enumerate(STREAMS):
        for row in range(1, session.rows):
            chosen = words.choose(name, session.logits[row - 1][number])[0]
            given = name in ("read", "ask")
            assert given or words.text([chosen]) == session.said[name][row]


def test_forced_streams_answer_rightly_and_react_a_pass_after_they_could_hear():
    config, words = side_by_side(first=1)
    loaded, events, clock = loaded_for(config), [], VirtualClock()
    caches = StreamCaches(loaded, clock, events.append)
    problem = config.drawn()[0]
    session = SideBySide(config, problem, words, caches, forced=True)
    go([session], caches, clock, lambda now: None, config.pass_s)
    assert session.said["say"] == problem.rows["say"]
    assert all(wanted == said and len(said) == 2 for wanted, said in session.answers())


def test_turns_read_think_and_answer_in_order():
    config, words = side_by_side(form="in turns", turn=2, keep_logits=False)
    _, (session,), events = play(config, words)
    assert isinstance(session, TurnTaking)
    names = [name for name, _ in session.said]
    total = dict(sums(session.problem.rows["read"]))
    for place, name in enumerate(names):
        if name == "ask":
            numbers = sum(one == "read" for one in names[:place]) // 2
            after = names[place + 1 :]
            first = after.index("say")
            assert after[:first] == ["think"] * first
            assert sum(one == "think" for one in names[: place + 1 + first]) == 2 * numbers
    asked = [row for row, letter in enumerate(session.problem.rows["ask"]) if letter == QUESTION]
    assert [wanted for wanted, _ in session.answers()] == [
        f"{[t for r, t in total.items() if r <= row][-1]:02}" for row in asked
    ]
    assert session.stream.length == len(session.said) - 1  # the last one is never read


def test_reactions_are_counted_in_passes_from_the_arrival():
    passes = [Span(float(at), "engine", "step", at - 1.0) for at in range(1, 5)]
    heard = [Mark(3.0, "ask", "ask"), Mark(7.0, "ask", "ask"), Mark(21.0, "ask", "ask")]
    react = [Mark(4.0, "say", "react"), Mark(9.0, "say", "react")]
    found, asked = of_events([*passes, *heard, *react], [[2.0, 6.0, 20.0]])
    assert asked == 3
    assert [(one.passes, one.seconds) for one in found] == [(2, 2.0), (0, 3.0)]
    missed, _ = of_events([*heard, react[1]], [[2.0, 6.0, 20.0]])
    assert [one.seconds for one in missed] == [3.0]
    late = [Mark(7.0, "all", "react"), Mark(8.0, "all", "react")]
    found, _ = of_events(late, [[2.0, 3.0]])
    assert [one.seconds for one in found] == [5.0, 5.0]


def test_what_streams_want_to_say_of_what_they_hear():
    assert thoughts("+5_-7__") == "___05_98"[:7]
    assert answers("____?___", "+5______") == "_" * (4 + LAG) + "05"
    assert answers("___?____", "+5______") == "_" * 8  # half a sum is no sum
