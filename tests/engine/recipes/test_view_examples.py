"""Workers who share a queue: what they are taught to say, and that training sees what they see."""

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.models.model import Model
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import loaded_model_of
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.reference import Seen, logits
from engine.reasoning.threads.shared_work import NAMES, shared, work
from engine.recipes.from_examples.square_queue import RECIPE
from engine.recipes.view_examples import example, written
from engine.tasks.square_queue import SquareQueue
from engine.training.data.packing import packs
from engine.training.losses.examples import logits_of
from engine.training.losses.language import fresh_weights

TOKENIZER = RECIPE.tokenizer()
PROBLEM = SquareQueue().problem("train", 1)


def encode(text: str) -> list[int]:
    return TOKENIZER.encode(text).ids


class Words:
    """The tokenizer as the engine knows it."""

    encode = staticmethod(encode)

    def decode(self, tokens: list[int]) -> str:
        return TOKENIZER.decode(tokens, skip_special_tokens=True)


@pytest.mark.parametrize("workers", range(1, 5))
def test_workers_say_every_entry_once_and_never_choose_in_the_same_step(workers):
    for seed in range(20):
        problem = SquareQueue().problem("train", seed)
        said = written(problem, range(workers))
        done = problem.done(said)
        assert all(done.values()) and len(done) == len(problem.entries)
        assert sum(map(len, said)) == 6 * len(problem.entries) + sum(range(workers))
        chosen = [at for text in said for at, letter in enumerate(text) if letter.isalpha()]
        assert len(set(chosen)) == len(chosen)


def seen_of(made) -> Seen:
    """What the example's tokens see, by places in each one's view."""
    first, token, place, own = [0], [], [], []
    for at in range(len(made)):
        others = np.flatnonzero(made.visible_TT[at])
        begin = made.shift_TK[at].max()
        shifts = made.shift_TK[at][made.block_T[others]]
        token += others.tolist()
        place += (begin - shifts + made.positions_T[others]).tolist()
        own.append(begin + made.positions_T[at])
        first.append(len(token))
    return Seen(*(np.array(column, np.int64) for column in (first, token, place, own)))


@pytest.fixture(scope="module")
def untrained():
    config = RECIPE.llama(TOKENIZER.get_vocab_size())
    return config, fresh_weights(config, 0)


def test_training_computes_the_logits_that_views_have(untrained):
    config, weights = untrained
    made = [
        example(PROBLEM, {name: wait for wait, name in enumerate(NAMES[:workers])}, encode, 1)
        for workers in (1, 3, 4)
    ]
    (packed,) = packs(made, 8, 256)
    have = logits_of(config, weights, packed)
    want = [
        logits(config, weights, one.tokens_T.tolist(), seen_of(one))[torch.from_numpy(one.at_L)]
        for one in made
    ]
    assert float((have - torch.cat(want)).abs().max()) < 1e-4


def test_the_reasoner_shows_workers_what_training_showed_them(untrained):
    """The same words in the same steps: the same tokens seen at the same places."""
    config, weights = untrained
    names = dict(zip(NAMES[:3], range(3), strict=True))
    made = example(PROBLEM, names, encode, 1)
    asked = update(ReasoningConfig(workers=3), {"layout": "contiguous", "keep_logits": True})
    asked = shared(asked)
    loaded = loaded_model_of(asked, Model(config, weights, plain=True), "queue", Words(), (1,))
    reasoner = Reasoner(asked, loaded, VirtualClock(), lambda event: None)
    reasoner.read(encode(PROBLEM.prompt))
    said = {name: made.tokens_T[made.block_T == n + 1].tolist() for n, name in enumerate(names)}
    for name in names:
        reasoner.start(name)
    for step in range(1, 9):
        reasoner.step()
        for name, thread in reasoner.table.threads.items():
            thread.feed = [said[name][step]]  # whatever the untrained model would have said
    record, wanted = reasoner.table.record, seen_of(made)
    seen = record.seen()
    order = {}  # (block, index) -> place among the example's tokens
    for at, (block, index) in enumerate(zip(made.block_T, made.positions_T, strict=True)):
        order[int(block), int(index)] = at
    blocks = {"prompt": 0, **{f"{name}/1": n + 1 for n, name in enumerate(names)}}
    places = [order[blocks[block], index] for block, index in record.written]
    for at, place in enumerate(places):
        have, want = (
            sorted(zip(told.token[a:b].tolist(), told.place[a:b].tolist(), strict=True))
            for told, (a, b) in (
                (seen, seen.first[at : at + 2]),
                (wanted, wanted.first[place : place + 2]),
            )
        )
        assert sorted((places[token], where) for token, where in have) == want


def test_untrained_workers_solve_nothing_and_end(untrained):
    config, weights = untrained
    asked = update(ReasoningConfig(workers=2), {"layout": "contiguous"})
    loaded = loaded_model_of(shared(asked), Model(config, weights), "queue", Words(), (1,))
    scores_P2 = work(asked, loaded, [PROBLEM])
    assert scores_P2.shape == (1, 2) and not scores_P2[0, 0]
