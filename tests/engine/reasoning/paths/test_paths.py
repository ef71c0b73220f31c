"""Parallel paths over shared pages: exact, apart from each other, and errors that stop nobody."""

import numpy as np
import pytest
import torch

from engine.cache.layouts import Block, abreast
from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Level, Mark, Page
from engine.models.families import parse
from engine.models.model import Model
from engine.reasoning.paths.parallel_paths import Controls, ParallelPaths, PathsConfig
from engine.reasoning.paths.script import side_by_side
from engine.reasoning.streams.reference import from_scratch
from engine.reasoning.threads.loaded_model import loaded_model_of
from engine.reasoning.threads.reasoner import ENDED, Reasoner
from tests.engine.models.small import config as shape_of
from tests.engine.models.small import weights
from tests.engine.reasoning.loaded_models import numbers, tokens_of

MARKS = Controls((80, 81, 82), 90)
PROMPT = [5, 9, 2, 44, 17]
RAW = shape_of("llama-3").raw | {"thinking_paths": 3, "max_position_embeddings": 256}
SHAPE = parse(RAW)
HELD = weights(SHAPE)


class Small(ParallelPaths):
    """Problems are token numbers."""

    def prompt(self, problem):
        return tokens_of(problem)


class Fanned:
    """A run of one problem or more on a small random model, to its end."""

    def __init__(self, plain=False, fans=1, between=lambda fanned: None, **changes):
        small = {
            "width": 3, "budget": 9, "summary": 6, "page_size": 4, "pages": 64, "finish": "last",
            "keep_logits": True, "sampling.ignore_eos": True, "sampling.temperature": 1.0,
        }  # fmt: skip
        self.config = update(PathsConfig(), {**small, **changes})
        self.events: list = []
        loaded = loaded_model_of(self.config.reasoning(), Model(SHAPE, HELD, plain=plain), "small")
        for tensors in loaded.storage.kv.tensors:
            for pages in tensors.values():
                pages.fill_(float("nan"))  # what was never written must never be read
        settings = self.config.reasoning()
        self.reasoner = Reasoner(settings, loaded, VirtualClock(), self.events.append)
        self.paths = Small(self.config, self.reasoner, MARKS)
        self.over = []
        begun = [
            self.paths.begin(numbers([token + n for token in PROMPT], number=n, seed=n))
            for n in range(fans)
        ]
        self.fans = begun
        while len(self.over) < fans:
            self.over += self.paths.step()
            between(self)

    def worst(self):
        """How far kept logits are from one forward for each problem with the block mask."""
        record, worst = self.reasoner.table.record, 0.0
        have = np.concatenate([logits for _, logits in self.reasoner.kept])
        for fan in self.fans:
            paths = [[MARKS.think[n], *path] for n, path in enumerate(fan.written())]
            script = side_by_side(fan.prompt, paths, [MARKS.summary, *fan.root.tokens[:-1]])
            names = [f"{fan.root.name}/1", *(f"{p.name}/1" for p in fan.children)]
            rows = [n for name in (*names, f"{fan.root.name}/2") for n in record.rows[name]]
            want = from_scratch(SHAPE, HELD, script)
            worst = max(worst, float(np.abs(have[rows] - want).max()))
        return worst

    def said(self, kind):
        return [event.text for event in self.events if type(event) is Mark and event.name == kind]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
@pytest.mark.parametrize("fans", [1, 3])
def test_every_logit_equals_a_forward_with_the_block_mask(plain, fans):
    assert Fanned(plain, fans).worst() < 1e-4


@pytest.mark.parametrize(
    "wrong",
    [{"embeddings": False}, {"abreast": False}, {"sees": 1}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_broken_mechanism_shows_in_the_logits(wrong):
    assert Fanned(**wrong).worst() > 1e-3


def test_a_path_thinks_the_same_however_wide_the_fan_is():
    alone, wide = Fanned(width=1), Fanned(width=3)
    assert alone.fans[0].children[0].tokens == wide.fans[0].children[0].tokens


def test_the_prompts_pages_are_shared_and_none_is_copied():
    fanned = Fanned()
    pages = [event for event in fanned.events if type(event) is Page]
    assert not [page for page in pages if page.state == "copy"]
    shared = {page.owner for page in pages if page.state == "share"}
    assert {"p0.1", "p0.2", "p0.3"} <= shared  # of the prompt, and the summary of their own
    assert "p0" in shared
    assert fanned.reasoner.table.cache.held == 0


def test_the_summary_sees_all_paths_at_one_position():
    levels = [event for event in Fanned().events if type(event) is Level and event.lane == "p0"]
    begins = {level.name: level.value for level in levels if level.value >= 0}
    assert begins == {
        "sees/p0/1": 0, "sees/p0.1/1": 5, "sees/p0.2/1": 5, "sees/p0.3/1": 5, "sees/p0/2": 14,
    }  # fmt: skip


@pytest.mark.parametrize(("finish", "short"), [("first", 2), ("half", 1), ("last", 0)])
def test_the_others_stop_once_enough_have_ended(finish, short):
    def end(fanned):  # paths 1 and 2 end by themselves, two steps apart
        for number, step in ((0, 3), (1, 5)):
            fan = fanned.fans[0]
            path = fan.children[number] if fan.children else None
            if path is not None and path.alive and len(path.tokens) >= step:
                fanned.reasoner.table.end(path, "finished", ENDED)

    paths = Fanned(between=end, finish=finish).fans[0].children
    stopped = [path for path in paths if "paths have ended" in path.why]
    assert len(stopped) == short
    assert len(paths[2].tokens) == {"first": 4, "half": 6, "last": 9}[finish]


def test_a_killed_path_is_not_read_and_the_others_go_on():
    def kill(fanned):
        if len(fanned.reasoner.table.threads) == 4 and fanned.reasoner.number == 4:
            fanned.reasoner.table.prune("p0.2", "a person said so")

    fanned = Fanned(between=kill)
    assert [path.state for path in fanned.fans[0].children] == ["finished", "pruned", "finished"]
    assert fanned.said("join") == ["p0 reads what was thought by p0.1, p0.3"]
    assert fanned.fans[0].root.state == "finished"


def test_more_paths_than_were_taught_are_refused():
    with pytest.raises(BadInput, match="width 4: model 'small' was taught 3 paths"):
        Fanned(width=4)


@pytest.mark.parametrize("budget", ["budget", "width", "summary"])
def test_a_budget_of_zero_is_refused(budget):
    with pytest.raises(BadInput, match=budget):
        update(PathsConfig(), {budget: 0})


def test_a_fork_without_a_page_is_refused_in_words_and_the_others_go_on():
    fanned = Fanned(pages=4)  # two for the prompt, two for three paths
    refused = fanned.said("refuse") + fanned.said("prune")
    assert any("pages" in text for text in refused)
    states = {event.thread: event.state for event in fanned.events if type(event) is Branch}
    assert "finished" in states.values()
    assert fanned.fans[0].root.state in ("finished", "aborted")
    assert fanned.reasoner.table.cache.held == 0


def test_what_stands_abreast_shares_positions():
    blocks = [Block(name, name, n) for n, name in enumerate("abcd")]
    for block, length in zip(blocks, (5, 2, 7, 3), strict=True):
        block.length = length
    assert [sight.begin for sight in abreast(blocks)] == [0, 5, 5, 12]
    assert [sight.begin for sight in abreast(blocks[:2])] == [0, 5]
    assert [sight.begin for sight in abreast(blocks[:1])] == [0]


def test_the_script_lets_a_path_see_the_prompt_and_itself_alone():
    script = side_by_side([1, 2], [[3, 4], [5]], [6, 7])
    assert script.positions_N.tolist() == [0, 1, 2, 3, 2, 4, 5]
    assert script.stream_N.tolist() == [0, 0, 1, 1, 2, 0, 0]
    sees = [[n for n, there in enumerate(row) if there] for row in script.visible_NN]
    assert sees == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 4], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6],
    ]  # fmt: skip
    assert torch.from_numpy(script.visible_NN).diagonal().all()
