"""Threads spawn children with contexts of their own, wait, and read what they return."""

import pytest

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Mark
from engine.reasoning.spawning.spawning import Calls, Spawning, SpawningConfig
from engine.reasoning.threads.reasoner import Reasoner
from tests.engine.reasoning.loaded_models import loaded, numbers, settings, tokens_of, worst

PROMPT = [5, 9, 2, 44]
CHILDREN = [[7, 8, 3], [30, 31], [12, 40, 41, 9, 1]]
NOTHING = [1, 1]


def returned(tokens: list[int]) -> list[int]:
    return [2, *tokens[-2:]]


class Small(Spawning):
    """Problems are token numbers."""

    def prompt(self, problem):
        return tokens_of(problem)


class Family:
    """A root over a random model, whose third token asks for children; said again, for none."""

    def __init__(self, children=CHILDREN, limits=None, **changes):
        """`limits`: knobs of the method; `changes`: of the reasoner."""
        changes = {"layout": "independent", "budget": 8, **changes}
        self.events: list = []
        config = settings(**changes)
        self.reasoner = Reasoner(config, loaded(config), VirtualClock(), self.events.append)
        prompts = iter([children])
        calls = Calls(self.third(), lambda *said: next(prompts, []), returned, NOTHING)
        own = update(SpawningConfig(), {"window": 1000, "children": 64, **(limits or {})})
        self.spawning = Small(own, self.reasoner, calls)
        self.family = self.spawning.begin(numbers(PROMPT, seed=3))
        self.table = self.reasoner.table

    def third(self) -> int:
        config = settings(layout="independent", budget=3)
        alone = Reasoner(config, loaded(config), VirtualClock(), [].append)
        root = alone.table.start("p", PROMPT.copy(), alone=True)
        while alone.step():
            pass
        assert root.tokens[2] not in root.tokens[:2]
        return root.tokens[2]

    def finish(self, each=lambda step: None) -> "Family":
        for step in range(200):
            each(step)
            self.spawning.step()
            if not self.family.root.alive:
                return self
        raise AssertionError("the family does not end")

    def marks(self, name: str) -> list[str]:
        return [e.text for e in self.events if isinstance(e, Mark) and e.name == name]

    def states(self, thread: str) -> list[str]:
        return [e.state for e in self.events if isinstance(e, Branch) and e.thread == thread]

    @property
    def read(self) -> list[int]:
        """What the root's block holds in the end, as far as it was written."""
        record = self.table.record
        return [record.tokens[number] for number in record.rows["p0/1"]]


def alone(prompt: list[int], count: int) -> list[int]:
    """What a thread says that starts with this prompt and nothing else."""
    config = settings(layout="independent", budget=count)
    found = Reasoner(config, loaded(config), VirtualClock(), [].append)
    thread = found.table.start("x", prompt.copy(), alone=True)
    while found.step():
        pass
    return thread.tokens


def test_a_child_is_a_thread_that_knows_its_message_alone():
    made = Family().finish()
    assert [child.name for child in made.family.children] == ["p0.1", "p0.2", "p0.3"]
    for prompt, child in zip(CHILDREN, made.family.children, strict=True):
        assert child.tokens == alone(prompt, 8)
        assert child.parent == "p0"
    assert worst(made.reasoner) < 1e-4


def test_a_parent_waits_and_goes_on_with_what_was_returned():
    made = Family()
    lengths = []
    made.finish(lambda step: lengths.append((made.family.root.state, len(made.family.root.tokens))))
    assert lengths.count(("waiting", 3)) == 8 + 1  # as long as its children, till the next step
    back = [word for child in made.family.children for word in returned(child.tokens)]
    before = [*PROMPT, *made.family.root.tokens[:3]]
    assert made.read[: len(before) + len(back)] == before + back
    assert made.family.root.tokens == [
        *made.family.root.tokens[:3],
        *alone([*before, *back], 5),
    ]
    assert made.states("p0")[:4] == ["queued", "running", "waiting", "running"]
    assert worst(made.reasoner) < 1e-4


def test_a_child_that_reads_its_parent_first_says_something_else():
    ours, theirs = Family().finish(), Family(limits={"own_context": False}).finish()
    assert [c.tokens for c in ours.family.children] != [c.tokens for c in theirs.family.children]


def test_the_critical_path_goes_through_the_longest_child():
    made = Family().finish()
    assert [child.depth for child in made.family.children] == [3 + 8] * 3
    assert made.family.root.depth == 3 + 8 + 5
    assert made.family.tokens == 8 + 3 * 8


def test_a_critical_path_that_is_used_up_ends_the_family():
    made = Family(critical=7).finish()
    assert max(thread.depth for thread in made.table.threads.values()) == 7
    assert made.family.root.why == "the critical path has its 7 tokens"


def test_a_family_stops_at_its_tokens():
    made = Family(limits={"total": 14}).finish()
    assert 14 <= made.family.tokens <= 14 + 3
    assert all("have used 14 tokens" in t.why for t in made.table.threads.values() if not t.parent)


def test_a_context_that_is_full_ends_its_thread_and_no_other():
    made = Family([[7, 8, 3], list(range(10, 19))], limits={"window": 12}).finish()
    short, long = made.family.children
    assert "its context of 12 tokens is full" in long.why
    assert len(long.tokens) < len(short.tokens) == 8


def test_children_beyond_the_limit_return_nothing_and_the_others_go_on():
    made = Family(limits={"children": 2}).finish()
    assert len(made.family.children) == 2
    assert made.marks("refuse") == ["spawn by p0: child 3 of a join that may have 2"]
    at = len(PROMPT) + 3 + 2 * 3
    assert made.read[at : at + 2] == NOTHING


def test_a_spawn_past_the_thread_limit_is_refused_in_words():
    made = Family(threads=3).finish()
    assert len(made.family.children) == 2
    (said,) = made.marks("refuse")
    assert said.startswith("spawn by p0: 3 threads run and at most 3 may")
    assert made.family.root.state == "finished"


def test_a_cache_too_small_for_a_child_refuses_it():
    made = Family([[7, 8, 3], [9] * 30], pages=8, page_size=4).finish()
    assert "too few for 30 tokens" in made.marks("refuse")[0]
    assert made.family.children[0].tokens == alone([7, 8, 3], 8)


def test_a_join_without_children_goes_on_at_once():
    made = Family([]).finish()
    assert made.family.root.tokens == alone(PROMPT, 8)
    assert made.marks("join")[0] == "p0 reads what was returned by nobody"


def test_a_killed_child_returns_nothing():
    made = Family()

    def kill(step):
        if step == 5:
            made.table.prune("p0.2", "a person said so")

    made.finish(kill)
    at = len(PROMPT) + 3 + 3
    assert made.read[at : at + 2] == NOTHING
    assert made.family.children[2].tokens == alone(CHILDREN[2], 8)


def test_children_of_a_killed_parent_end_with_it():
    made = Family()
    made.finish(lambda step: made.table.prune("p0", "a person said so") if step == 5 else None)
    assert [child.state for child in made.family.children] == ["pruned"] * 3
    assert all("its parent, is over" in child.why for child in made.family.children)
    assert not made.spawning.groups
    assert made.table.cache.held == 0


def test_two_families_do_not_hear_each_other():
    one = Family().finish()
    both = Family()
    other = both.spawning.begin(numbers([3, 3, 8, 20, 7], number=1, seed=9))
    both.finish()
    while other.root.alive:
        both.spawning.step()
    assert both.family.root.tokens == one.family.root.tokens
    assert [c.tokens for c in both.family.children] == [c.tokens for c in one.family.children]


def test_what_cannot_be_asked_of_a_waiting_or_dead_thread_is_refused():
    made = Family()
    for _ in range(5):
        made.spawning.step()
    table = made.table
    with pytest.raises(BadInput, match="fork of p0: it waits for its children"):
        table.fork("p0")
    with pytest.raises(BadInput, match="spawn of p0: it waits"):
        table.spawn("p0", [4])
    with pytest.raises(BadInput, match="a budget of 0 tokens"):
        table.spawn("p0.1", [4], budget=0)
    with pytest.raises(BadInput, match=r"resume of p0\.1: it does not wait"):
        table.resume("p0.1", [], 0)
    table.prune("p0.1", "enough")
    with pytest.raises(BadInput, match=r"join of p0\.1: it is pruned already \(enough\)"):
        table.join("p0.2", "p0.1")
    with pytest.raises(BadInput, match=r"spawn of p0\.1: it is pruned already"):
        table.spawn("p0.1", [4])
    made.finish()
    assert made.family.children[1].tokens == alone(CHILDREN[1], 8)


def test_every_page_is_free_in_the_end():
    made = Family().finish()
    assert made.table.cache.held == 0
    assert made.table.cache.available == made.reasoner.config.pages
