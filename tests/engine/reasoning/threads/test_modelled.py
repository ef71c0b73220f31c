"""Threads under both clocks: the same program on a described device, and budgets in its seconds."""

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Mark, Page, Span, Token
from engine.core.log import Log
from engine.core.run import Live
from engine.reasoning.threads.budget import Budget, budget
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import open_model
from engine.reasoning.threads.run import run
from tests.engine.reasoning.threads.test_run import ended

PLAIN = {
    "workers": 3, "budget": 12, "step_end": "\0", "sampling.ignore_eos": True, "step_tokens": 30,
    "fork_at": 3, "join_at": 8, "prune_at": 6,
}  # fmt: skip


def thought(*commands, **changes) -> Log:
    live = Live(Log())
    live.inbox.extend(commands)
    run(update(ReasoningConfig(), {**PLAIN, **changes}), live)
    return live.log


def test_policies_decide_alike_under_both_clocks():
    """What is forked, joined, pruned and shared depends on no tensor here; seconds do."""
    real, modelled = thought(), thought(executor="modelled")
    for kind, facts in (
        (Branch, lambda b: (b.thread, b.state, b.why)),
        (Page, lambda p: (p.page, p.owner, p.state, p.start)),
    ):
        assert [facts(e) for e in real.of(kind)] == [facts(e) for e in modelled.of(kind)]
    assert len(real.of(Token)) == len(modelled.of(Token))
    assert modelled.opened.clock == "virtual"
    assert thought(executor="modelled").events[1:] == modelled.events[1:]


def test_steps_of_more_threads_take_longer_on_the_device():
    def step(**changes) -> float:
        big = {"model": "llama-3.1-8b", "dtype": "bfloat16", "executor": "modelled", "fork_at": 0,
               "join_at": 0, "prune_at": 0, "pages": 64}  # fmt: skip
        log = thought(**{**big, **changes})
        spans = [span for span in log.of(Span) if span.name == "step"]
        return spans[-1].time - spans[-1].start

    one, eight = step(workers=1), step(workers=8)
    assert 0.001 < one < eight < 2 * one  # weights are read once for all


def test_a_budget_in_modelled_seconds_ends_threads_and_no_others():
    steps = thought(executor="modelled", fork_at=0, join_at=0, prune_at=0)
    each = [span.time - span.start for span in steps.of(Span) if span.name == "step"]
    seconds = sum(each[:5]) + each[5] / 2
    log = thought(executor="modelled", fork_at=0, join_at=0, prune_at=0, seconds=seconds)
    said = {name: sum(t.thread == name for t in log.of(Token)) for name in ended(log)}
    assert set(said.values()) == {6}
    whys = {b.why for b in log.of(Branch) if b.state == "finished"}
    assert whys == {f"its budget of {seconds:.3g} s is spent"}


def test_a_fork_may_have_a_budget_of_its_own_in_any_unit():
    quiet = {"executor": "modelled", "fork_at": 0, "join_at": 0, "prune_at": 0}
    log = thought({"fork": ["alice", "4 tokens"]}, {"fork": ["bob", "7 critical tokens"]},
                  {"fork": ["carol", "1 us"]}, **quiet)  # fmt: skip
    count = {name: sum(t.thread == name for t in log.of(Token)) for name in ended(log)}
    assert (count["alice.1"], count["bob.1"], count["carol.1"]) == (4, 7, 1)
    assert count["alice"] == count["bob"] == count["carol"] == 12


def test_budgets_are_read_with_their_units():
    assert budget("40") == budget("40 tokens") == budget(40) == Budget(tokens=40)
    assert budget("3 critical tokens") == Budget(critical=3)
    assert budget("20 ms") == budget("0.02 s") == Budget(seconds=0.02)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("0 tokens", "at least 1"), ("0 s", "more than 0"), ("-3 ms", "more than 0"),
        ("1.5 tokens", "whole number"), ("3 parsecs", "no unit 'parsecs'"),
        ("soon", "a number and its unit"), ("nan s", "a number and its unit"),
        ("1..2 s", "no number"), ("9e99 s", "more than 0"),
    ],
)  # fmt: skip
def test_a_budget_of_zero_or_of_a_wrong_unit_is_refused(said, why):
    with pytest.raises(BadInput, match=why):
        budget(said)


def test_a_wrong_budget_is_refused_in_words_and_the_threads_go_on():
    log = thought({"fork": ["alice", "0 s"]}, {"fork": ["bob", "2 parsecs"]}, executor="modelled")
    said = [mark.text for mark in log.of(Mark) if mark.name == "refuse"]
    assert len(said) == 2 and "more than 0 s" in said[0] and "no unit 'parsecs'" in said[1]
    assert ended(log)["bob"] == "finished"


def test_a_modelled_mind_has_no_tensors_to_hand_out():
    loaded = open_model(update(ReasoningConfig(), {"executor": "modelled"}))
    with pytest.raises(BadInput, match="modelled, not run"):
        _ = loaded.model
