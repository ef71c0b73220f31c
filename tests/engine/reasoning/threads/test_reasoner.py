"""Threads over one cache: exact logits whatever happens, room, errors that stop nobody else."""

import numpy as np
import pytest

from engine.cache.layouts import placed
from engine.core.errors import BadInput
from engine.core.events import Branch, Level, Mark, Page, Token
from tests.engine.reasoning.loaded_models import PROMPT, finish, reasoner, settings, worst

LAYOUTS = ("contiguous", "interleaved", "combined", "independent")


def names(view):
    return [sight.block.name for sight in view]


@pytest.mark.parametrize("workers", range(1, 9))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_logit_equals_a_forward_from_scratch(layout, workers):
    thinking = reasoner(settings(layout=layout, workers=workers, budget=7), [])
    finish(thinking)
    assert worst(thinking) < 1e-4
    assert all(len(t.tokens) == 7 for t in thinking.table.threads.values())


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_forks_joins_and_words_of_a_person_keep_every_logit_exact(layout, plain):
    config = settings(layout=layout, workers=3, budget=16, threads=5, header="#{worker}:")
    thinking = reasoner(config, [], "llama-3", plain=plain, words=True)
    table = thinking.table
    for _ in range(3):
        thinking.step()
    table.fork("a")
    thinking.step()
    table.fork("a.1", 9)
    thinking.say("b", "look again")
    thinking.step()
    table.join("b", "a.1")
    thinking.step()
    table.prune("c", "it repeats b")
    thinking.step()
    table.join("b", "a.1.1")
    finish(thinking)
    states = {name: thread.state for name, thread in table.threads.items()}
    assert states == {
        "a": "finished", "b": "finished", "c": "pruned", "a.1": "joined", "a.1.1": "joined"
    }  # fmt: skip
    assert worst(thinking) < 1e-4


def test_ignoring_where_blocks_stand_is_noticed():
    thinking = reasoner(settings(layout="contiguous", turn_queries=False), [])
    finish(thinking)
    assert worst(thinking) > 1e-2


def test_workers_who_hear_nobody_are_independent_runs():
    """With two different feeds, side by side and each alone: the same tokens and logits."""
    together = reasoner(settings(layout="independent", workers=2), [])
    together.table.threads["b"].feed = [41, 7]
    finish(together)
    for name, feed in (("a", PROMPT[-1:]), ("b", [41, 7])):
        alone = reasoner(settings(layout="independent", workers=1), [])
        alone.table.threads["a"].feed = feed
        finish(alone)
        assert alone.table.threads["a"].tokens == together.table.threads[name].tokens


def test_contiguous_puts_others_before_own_and_moves_as_they_grow():
    thinking = reasoner(settings(layout="contiguous", workers=3), [])
    thinking.step()
    thinking.step()
    view = thinking.table.view(thinking.table.threads["b"])
    assert names(view) == ["prompt", "a/1", "c/1", "b/1"]
    assert [sight.begin for sight in view] == [0, 6, 8, 10]


def test_interleaved_hides_a_step_until_it_is_finished_and_combined_does_not():
    seen = {}
    for layout in ("interleaved", "combined"):
        thinking = reasoner(settings(layout=layout, workers=2, step_tokens=3), [])
        views = []
        for _ in range(5):
            thinking.step()
            views.append(names(thinking.table.view(thinking.table.threads["a"])))
        seen[layout] = views
    assert seen["interleaved"][0] == ["prompt", "a/1"]
    assert seen["combined"][0] == ["prompt", "b/1", "a/1"]
    assert seen["interleaved"][-1] == ["prompt", "a/1", "b/1", "a/2"]
    assert seen["combined"][-1] == ["prompt", "a/1", "b/1", "b/2", "a/2"]


def test_a_fork_shares_pages_and_copies_one_when_it_writes():
    events = []
    thinking = reasoner(settings(layout="independent", workers=1, budget=20), events)
    for _ in range(6):  # six tokens in pages of four: the second is half full
        thinking.step()
    before = thinking.table.threads["a"].block.pages.copy()
    child = thinking.table.fork("a", 14)
    assert child.block.pages == before
    thinking.step()
    assert child.block.pages[0] == before[0]
    assert child.block.pages[1] != before[1]
    copies = [event for event in events if isinstance(event, Page) and event.state == "copy"]
    assert [(event.parent, event.owner) for event in copies] == [(before[1], "a.1")]
    finish(thinking)
    assert worst(thinking) < 1e-4
    assert child.tokens == thinking.table.threads["a"].tokens[6:]  # greedy: the same thoughts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_page_is_held_by_who_sees_it_and_none_is_lost(layout):
    events = []
    thinking = reasoner(settings(layout=layout, workers=3, threads=4), events)
    table, pool = thinking.table, thinking.table.cache.pool
    while thinking.step():
        if thinking.number == 3:
            table.fork("b")
        if thinking.number == 6:
            table.prune("a")
        for thread in table.running:
            view = [s.block for s in table.view(thread) if s.block.name in thread.sees]
            assert {page for block in view for page in block.pages} <= set(thread.pages)
    prompt = placed(table.closed[:1])[0].block.pages
    assert pool.total - pool.free == len(prompt)
    held: dict[int, set[str]] = {}
    for event in events:
        if isinstance(event, Page):
            owners = held.setdefault(event.page, set())
            if event.state in ("take", "share", "copy"):
                assert event.owner not in owners
                owners.add(event.owner)
            elif event.state == "drop":
                owners.remove(event.owner)
            elif event.state == "free":
                assert not owners
    assert {page for page, owners in held.items() if owners} == set(prompt)


def test_the_log_says_where_everybody_sees_everything():
    events = []
    thinking = reasoner(settings(layout="combined", workers=3, step_tokens=3), events)
    told: dict[str, dict[str, int]] = {}
    while True:
        first = len(events)
        views = {}
        if not thinking.step():
            break
        for event in events[first:]:
            if isinstance(event, Level) and event.name.startswith("sees/"):
                places = told.setdefault(event.lane, {})
                if event.value < 0:
                    del places[event.name.removeprefix("sees/")]
                else:
                    places[event.name.removeprefix("sees/")] = int(event.value)
        for thread in thinking.table.running:
            views[thread.name] = thread.sees
            assert told[thread.name] == thread.sees
    assert not any(told.values())


def test_counters_say_tokens_in_all_on_the_critical_path_and_saved():
    events = []
    thinking = reasoner(settings(layout="contiguous", workers=4, budget=5), events)
    finish(thinking)
    last = {e.name: e.value for e in events if isinstance(e, Level) and e.lane == "threads"}
    assert last["tokens_total"] == 20
    assert last["tokens_critical"] == 5
    assert last["tokens_saved"] == 3 * (6 + 4 * 5)  # four views of all there is, computed once
    assert sum(isinstance(event, Token) for event in events) == 20


def test_the_critical_path_goes_through_forks_and_joins():
    thinking = reasoner(settings(layout="independent", workers=1, budget=50, critical=11), [])
    table = thinking.table
    for _ in range(4):
        thinking.step()
    table.fork("a")
    table.threads["a"].depth = 0  # as if the parent had waited
    thinking.step()
    table.join("a", "a.1")
    assert table.threads["a"].depth == 5
    finish(thinking)
    assert table.threads["a"].depth == 11
    assert "critical path" in table.threads["a"].why


def test_requests_that_cannot_be_met_are_refused_and_the_others_go_on():
    thinking = reasoner(settings(workers=2, threads=3, budget=9), [])
    table = thinking.table
    thinking.step()
    table.fork("a")
    table.join("a", "a.1")
    for wrong, sentence in (
        (lambda: table.join("a", "a.1"), "join of a.1: it is joined already"),
        (lambda: table.join("a.1", "b"), "join of a.1: it is joined already"),
        (lambda: table.join("a", "a"), "cannot join itself"),
        (lambda: table.prune("nobody"), "no such thread"),
        (lambda: table.fork("a", 0), "a budget of 0 tokens; give at least 1"),
        (lambda: thinking.start("b"), "there is a thread of that name"),
        (lambda: thinking.say("a", "hm"), "no tokenizer"),
        (lambda: thinking.read([1]), "prompt: 1 tokens"),
    ):
        with pytest.raises(BadInput, match=sentence):
            wrong()
    table.fork("b")
    with pytest.raises(BadInput, match="3 threads run and at most 3 may"):
        table.fork("a")
    with pytest.raises(BadInput, match="3 threads run and at most 3 may"):
        thinking.start("z")
    finish(thinking)
    assert all(len(table.threads[name].tokens) == 9 for name in ("a", "b"))
    assert worst(thinking) < 1e-4


def test_a_cache_too_small_for_a_fork_refuses_it():
    config = settings(layout="independent", workers=1, pages=5, budget=5)
    thinking = reasoner(config, [])
    for _ in range(3):
        thinking.step()
    thinking.table.fork("a")
    thinking.step()  # the copy of the part-filled page takes one
    with pytest.raises(BadInput, match="fork of a: 1 of 5 pages are left, too few for both"):
        thinking.table.fork("a")
    finish(thinking)
    assert len(thinking.table.threads["a"].tokens) == 5
    assert worst(thinking) < 1e-4


def test_who_finds_no_page_ends_and_the_others_go_on():
    events = []
    thinking = reasoner(settings(layout="contiguous", workers=2, pages=5, budget=9), events)
    finish(thinking)
    states = {name: thread.state for name, thread in thinking.table.threads.items()}
    assert sorted(states.values()) == ["aborted", "finished"]
    assert [e.state for e in events if isinstance(e, Branch)].count("aborted") == 1
    assert any("the cache is full" in e.text for e in events if isinstance(e, Mark))
    assert worst(thinking) < 1e-4


def test_a_prompt_that_does_not_fit_is_refused():
    with pytest.raises(BadInput, match="do not fit 1 pages"):
        reasoner(settings(pages=1), [])


def test_a_full_view_ends_threads_one_by_one():
    thinking = reasoner(settings(layout="contiguous", workers=2, budget=200, pages=200), [])
    finish(thinking)
    ends = thinking.table.threads.values()
    assert all(t.why == "the view is full: 256 positions" for t in ends)
    assert sum(len(t.tokens) for t in ends) >= 256 - len(PROMPT)


def test_draws_depend_on_the_seed_of_a_thread_alone():
    changes = {"sampling.temperature": 1.0, "layout": "independent", "keep_logits": False}
    said = []
    for workers in (1, 3):
        thinking = reasoner(settings(workers=workers, **changes), [])
        finish(thinking)
        said.append(thinking.table.threads["a"].tokens)
    assert said[0] == said[1]
    assert len({tuple(t.tokens) for t in thinking.table.threads.values()}) == 3
    assert np.ptp(said[0]) > 0
