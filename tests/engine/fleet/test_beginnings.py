"""Beginnings of prompts: a hot one is told apart by more of its tokens, held to a plain count."""

import numpy as np
import pytest

from engine.fleet.beginnings import Beginnings
from engine.fleet.routers.by_load import LeastLoaded
from engine.fleet.routers.dual_map import DualMap
from engine.fleet.routers.router import Asked, Load

CHANCE = np.random.default_rng(5)
SHARED = CHANCE.integers(0, 999, (6, 400)).astype(np.int32)  # beginnings, the first the hottest
SHARES = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.05])


def asked(count):
    """Prompts of a shared beginning, shorter or longer, and tokens of their own."""
    for _ in range(count):
        begins = SHARED[CHANCE.choice(6, p=SHARES)][: CHANCE.integers(40, 400)]
        yield np.append(begins, CHANCE.integers(0, 999, CHANCE.integers(1, 300))).astype(np.int32)


@pytest.mark.parametrize(("replicas", "recent"), [(2, 30), (8, 30), (8, 7), (5, 0), (1, 30)])
def test_the_shortest_beginning_that_is_not_hot_is_hashed(replicas, recent):
    """Beside a reference that counts, of each length, the last prompts which begin as this one."""
    router, before = DualMap(beginning=50, recent=recent), list[np.ndarray]()
    beginnings = Beginnings(router)
    for prompt in asked(150):
        before = [*before, prompt][-recent:] if recent else [prompt]
        ends = [50 << time for time in range(8 if recent else 1)]
        lengths = [end for end in ends if end <= len(prompt)] or [50]

        def alike(length, prompt=prompt, before=before):
            begins = prompt[:length:17].tolist()
            had = [each for each in before if length == 50 or len(each) >= length]
            return sum(each[:length:17].tolist() == begins for each in had)

        most = 2 * recent / replicas
        length = next((each for each in lengths if alike(each) <= most), lengths[-1])
        key = beginnings.key(prompt, replicas)
        assert key == router.keys(prompt)[lengths.index(length)]
        assert len(beginnings.last) <= max(recent, 0)
    assert sum(beginnings.count.values()) == sum(map(len, beginnings.last))


def test_a_hot_beginning_meets_more_than_two_replicas_and_others_two():
    loads = [Load(number, lambda prompt: 0) for number in range(8)]
    router, met = DualMap(beginning=32, recent=20), {0: set(), 1: set()}
    beginnings = Beginnings(router)
    for number in range(200):
        group = int(number % 5 == 0)  # four of five are hot
        own = CHANCE.integers(0, 999, 200).astype(np.int32)
        prompt = np.append(SHARED[group][:40], own)
        key = beginnings.key(prompt, len(loads))
        one = Asked(number, prompt, 0, key=key)
        met[group].update(load.number for load in router.candidates(one, loads))
    assert len(met[0]) == 8 and len(met[1]) == 2


def test_other_routers_are_told_of_none():
    assert Beginnings(LeastLoaded()).key(SHARED[0], 4) == 0
