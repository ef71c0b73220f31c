"""Threads and ordinary requests in the same steps: the same pages, the same forward passes, and
everybody says what they say alone."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.events import Branch, Span, Token
from engine.inference.engine import Engine
from engine.inference.executors.tensors import gather
from engine.inference.requests.request import Request, Sampling
from engine.reasoning.spawning.spawning import Calls, Spawning, SpawningConfig
from engine.reasoning.threads.reasoner import Reasoner
from tests.engine.reasoning.loaded_models import PROMPT, loaded, numbers, settings, tokens_of

ASKED = ([3, 8, 8, 40, 21], [61, 5], list(range(30, 52)), [9] * 13)
LAYOUTS = ("contiguous", "interleaved", "combined", "independent")


class Both:
    """An engine with requests and, where `config.workers`, threads that step along."""

    def __init__(self, config, family="qwen3", plain=False, asked=ASKED, tokens=12, **serving):
        self.events = []
        wish = Sampling(max_tokens=tokens, ignore_eos=True)
        known = loaded(config, family, plain=plain)
        served = config.serving().model_copy(update=serving)
        self.engine = Engine(served, known.executor, VirtualClock(), self.events.append)
        self.reasoner = Reasoner(config, known, self.engine.clock, self.events.append, self.engine)
        self.requests = [Request(np.array(prompt, np.int32), wish) for prompt in asked]
        for request in self.requests:
            self.engine.add(request)

    def think(self, workers):
        self.reasoner.read(PROMPT)
        for name in "abcdefgh"[:workers]:
            self.reasoner.start(name)
        return self

    def finish(self):
        while self.busy and self.reasoner.step():
            pass
        return self

    @property
    def busy(self):
        return self.engine.busy or bool(self.reasoner.table.running)

    @property
    def said(self):
        threads = {name: t.tokens for name, t in self.reasoner.table.threads.items()}
        return threads, [request.generated.tolist() for request in self.requests]

    @property
    def shared(self):
        """Steps in which both threads and requests had tokens."""
        tags = [e.tag for e in self.events if isinstance(e, Span) and e.name == "step"]
        return sum("threads=" in tag and not tag.startswith("decode=0 prefill=0") for tag in tags)


def alone(config, workers, **how):
    """What threads say without requests, and requests without threads."""
    threads = Both(config, asked=(), **how).think(workers).finish().said[0]
    return threads, Both(config, **how).finish().said[1]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_everybody_says_what_they_say_alone(layout, plain):
    config = settings(layout=layout, workers=3, budget=14, keep_logits=False)
    both = Both(config, plain=plain).think(3).finish()
    assert both.said == alone(config, 3, plain=plain)
    assert both.shared >= 12
    cache = both.engine.cache
    both.reasoner.leave()
    both.engine.reset()
    both.engine.hear()
    assert cache.pool.free == cache.pool.total and not cache.pool.references.any()


def test_threads_that_fork_and_join_do_so_beside_requests():
    config = settings(layout="contiguous", budget=16, keep_logits=False)

    def told(both):
        both.think(2)
        for step in range(40):
            table = both.reasoner.table
            if step == 3:
                table.fork("a")
            if step == 9:
                table.join("b", "a.1")
            if not both.busy or not both.reasoner.step():
                break
        return both.said

    threads, requests = told(Both(config))
    assert threads == told(Both(config, asked=()))[0]
    assert requests == Both(config).finish().said[1]
    assert set(threads) == {"a", "b", "a.1"}


class Small(Spawning):
    """Problems are token numbers."""

    def prompt(self, problem):
        return tokens_of(problem)


def test_families_that_spawn_and_wait_step_with_requests():
    """A root that asks for a child at once, with a context of its own."""
    config = settings(layout="independent", budget=10, keep_logits=False)
    calls = Calls(1, lambda prompt, written: [[7, 7, 2]], lambda written: written[-2:], [4])

    def told(asked):
        both = Both(config, asked=asked)
        spawning = Small(SpawningConfig(), both.reasoner, calls)
        family = spawning.begin(numbers([5, 9, 2, 44], seed=1))
        family.root.tokens.append(1)  # what it was made to say: it joins
        spawning.advance(family)
        while spawning.groups or both.busy:
            spawning.step()
        return both

    both = told(ASKED)
    assert both.said[0] == told(()).said[0]
    assert both.said[1] == Both(config).finish().said[1]
    assert set(both.said[0]) == {"p0", "p0.1"} and both.shared >= 8


def leaking(rows, threads):
    """A row sees what the first thread sees: the mistake that this file is about."""
    batch = beside(rows, threads)
    if batch.views is not None:
        first = batch.views.first_B1.copy()
        first[1 : len(rows.context_B) + 1] = first[len(rows.context_B) + 1]
        batch.views = replace(batch.views, first_B1=first)
    return batch


beside = gather.beside


def test_a_view_that_leaks_into_a_row_is_noticed(monkeypatch):
    config = settings(layout="contiguous", workers=3, budget=14, keep_logits=False)
    monkeypatch.setattr(gather, "beside", leaking)
    assert Both(config).think(3).finish().said != alone(config, 3)


def test_requests_yield_their_pages_to_threads_and_say_the_same():
    config = settings(layout="contiguous", workers=3, budget=30, pages=40, keep_logits=False)
    how = {"tokens": 40, "asked": ASKED[:3]}
    both = Both(config, **how).think(3).finish()
    yielded = [e for e in both.events if isinstance(e, Branch) and e.state == "preempted"]
    assert yielded and all(branch.thread.startswith("r") for branch in yielded)
    threads = both.reasoner.table.threads.values()
    assert [thread.why for thread in threads] == ["its budget of 30 tokens is spent"] * 3
    want = Both(config, asked=()).think(3).finish().said[0], Both(config, **how).finish().said[1]
    assert both.said == want


def test_a_thread_without_room_ends_when_nobody_is_left_to_yield():
    config = settings(layout="contiguous", workers=3, budget=60, pages=24, keep_logits=False)
    both = Both(config, asked=ASKED[:2]).think(3).finish()
    states = {t.name: t.state for t in both.reasoner.table.threads.values()}
    assert "aborted" in states.values() and "finished" in states.values()
    assert [request.state for request in both.requests] == ["finished"] * 2


def test_tokens_of_threads_count_to_the_step():
    config = settings(layout="independent", workers=3, budget=12, keep_logits=False)
    both = Both(config, step_tokens=5).think(3)
    both.finish()
    sizes = {}
    for event in both.events:
        if isinstance(event, Span) and event.name == "step":
            words = dict(word.split("=") for word in event.tag.split())
            sizes[event.time] = int(words["decode"]) + int(words["prefill"])
    assert both.said == alone(config, 3)
    tokens = [e for e in both.events if isinstance(e, Token)]
    assert tokens and max(sizes.values()) <= 5


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
def test_sampled_attention_of_a_thread_is_that_of_a_request_with_the_same_words(plain):
    """Prompt and own block stand where a request's first and last pages stand."""
    prompt, said = [5, 9, 2, 44, 17, 30, 8, 3, 61], 6
    config = settings(
        layout="independent", budget=said, attention_every=1, attention_layer=1, keep_logits=False
    )
    known = loaded(config, plain=plain)
    events: list = []
    thinking = Reasoner(config, known, VirtualClock(), events.append)
    thinking.read(prompt)
    thinking.start("a")
    while thinking.step():
        pass
    blobs: dict = {}
    wish = Sampling(max_tokens=said, ignore_eos=True)
    known = loaded(config, plain=plain)
    engine = Engine(config.serving(), known.executor, VirtualClock(), events.append, blobs=blobs)
    request = Request(np.array(prompt, np.int32), wish)
    engine.add(request)
    engine.run()
    assert thinking.table.threads["a"].tokens == request.generated.tolist()
    assert len(thinking.blobs) == len(blobs) == said
    for ours, theirs in zip(thinking.blobs.values(), blobs.values(), strict=True):
        assert ours.shape == (1, 2) and ours.sum() == pytest.approx(1, abs=1e-5)
        assert ours[0, 0] == pytest.approx(theirs[:2].sum(), abs=1e-4)  # it took pages 0, 1, …


def test_attention_is_sampled_of_all_who_share_a_step():
    config = settings(
        layout="contiguous", workers=3, budget=6, attention_every=2, keep_logits=False
    )
    both = Both(config).think(3).finish()
    masses = list(both.reasoner.blobs.values())
    assert len(masses) >= 3
    for mass_BN in masses:
        assert mass_BN.shape == (3, 4)  # the prompt, the others, one's own
        np.testing.assert_allclose(mass_BN.sum(1), 1, atol=1e-5)
