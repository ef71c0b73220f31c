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
    tree.insert(root, tokens(1, 2).tobytes(), 0)
    tree.insert(0, tokens(3, 4).tobytes(), 1)
    tree.insert(1, tokens(5, 6).tobytes(), 2)
    tree.insert(0, tokens(7, 8).tobytes(), 3)
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
    tree.insert(tree.root("other"), tokens(1, 2).tobytes(), 4)
    assert tree.match(tokens(1, 2, 3, 4), "other") == [4]
    assert tree.match(tokens(1, 2, 3, 4)) == [0, 1]


def test_tokens_themselves_are_compared_not_their_hashes():
    class Colliding(bytes):
        __hash__ = lambda self: 1  # noqa: E731

    tree = PrefixTree(4, 2)
    root = tree.root()
    tree.insert(root, Colliding(tokens(1, 2).tobytes()), 0)
    assert tree.child(root, Colliding(tokens(2, 1).tobytes())) == -1
    assert tree.child(root, Colliding(tokens(1, 2).tobytes())) == 0


def test_only_leaves_can_go():
    tree = grown()
    with pytest.raises(ValueError, match="no leaf"):
        tree.remove(1)
    assert tree.remove(2) == 1
    assert tree.remove(1) == 0
    assert tree.match(tokens(1, 2, 3, 4)) == [0] and len(tree) == 2
