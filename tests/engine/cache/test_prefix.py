"""The prefix tree: what is found, and what must not be."""

import numpy as np
import pytest

from engine.cache.prefix import PrefixTree


def tokens(*values):
    return np.array(values, np.int32)


def grown() -> PrefixTree:
    """1 2 | 3 4 | 5 6 under pages 0, 1, 2, and 7 8 beside 3 4 as page 3."""
    tree = PrefixTree(8, 2)
    root = tree.root()
    tree.insert(root, tokens(1, 2), 0)
    tree.insert(0, tokens(3, 4), 1)
    tree.insert(1, tokens(5, 6), 2)
    tree.insert(0, tokens(7, 8), 3)
    return tree


def test_the_longest_chain_of_full_pages_is_found():
    tree = grown()
    assert tree.match(tokens(1, 2, 3, 4, 5, 6, 9)) == [0, 1, 2]
    assert tree.match(tokens(1, 2, 7, 8)) == [0, 3]
    assert tree.match(tokens(1, 2, 3)) == [0]
    assert tree.match(tokens(3, 4)) == [], "pages hang under what came before them"
    assert tree.match(tokens(1, 2, 3, 4), limit=1) == [0]


def test_another_salt_finds_nothing():
    tree = grown()
    assert tree.match(tokens(1, 2, 3, 4), "other") == []
    tree.insert(tree.root("other"), tokens(1, 2), 4)
    assert tree.match(tokens(1, 2, 3, 4), "other") == [4]
    assert tree.match(tokens(1, 2, 3, 4)) == [0, 1]


def test_tokens_themselves_are_compared_not_their_hashes():
    tree = PrefixTree(4, 2)
    tree.insert(tree.root(), tokens(1, 2), 0)
    tree.nodes.tokens_PW[0] = tokens(2, 1)  # what has the digest of 1 2 now holds something else
    assert tree.match(tokens(1, 2)) == []


def test_contents_that_are_there_keep_their_page():
    tree = grown()
    assert tree.insert(0, tokens(3, 4), 5) == 1 and 5 not in tree


def test_what_comes_and_goes_is_found_as_in_a_dictionary():
    rng, tree, told = np.random.default_rng(0), PrefixTree(40, 1), {}
    for _ in range(4000):
        page = int(rng.integers(40))
        if page not in tree:
            parent = int(rng.choice([tree.root(), *told.values()]))
            token = int(rng.integers(3))
            there = tree.insert(parent, tokens(token), page)
            assert there == told.get((parent, token), -1)
            told.setdefault((parent, token), page)
        elif not tree.children(page):
            parent = tree.remove(page)
            key = next(key for key, value in told.items() if value == page)
            assert key[0] == parent
            del told[key]
        for (parent, token), page in told.items():
            assert tree.follow(tokens(token), parent, 1) == [page]
        assert len(tree) == len(told)


def test_only_leaves_can_go():
    tree = grown()
    with pytest.raises(ValueError, match="no leaf"):
        tree.remove(1)
    assert tree.remove(2) == 1
    assert tree.remove(1) == 0
    assert tree.match(tokens(1, 2, 3, 4)) == [0] and len(tree) == 2
