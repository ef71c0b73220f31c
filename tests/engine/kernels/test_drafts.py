"""Drafts looked up by n-grams: the compiled search against one written down."""

import numpy as np

from engine.kernels.drafts.lookup import Places, look_up


def looked_up(row: np.ndarray, shortest: int, longest: int, count: int) -> list[int]:
    """What followed the last tokens where most of them stood before, -1 beyond."""
    best, place = shortest - 1, -1
    for end in range(len(row) - 2, -1, -1):
        same = 0
        while same < min(longest, end + 1) and row[end - same] == row[len(row) - 1 - same]:
            same += 1
        if same > best:
            best, place = same, end
    found = row[place + 1 : place + 1 + count].tolist() if place >= 0 else []
    return found + [-1] * (count - len(found))


def test_what_followed_is_found_where_most_stands_and_last(full):
    """As rows grow, and as others come to sit in them."""
    draw = np.random.default_rng(0)
    for _ in range(400 if full else 40):
        tokens = draw.integers(0, int(draw.choice([2, 5, 40])), (3, 400)).astype(np.int32)
        known = draw.integers(1, 300, 3).astype(np.int32)
        shortest = int(draw.integers(1, 4))
        longest = shortest + int(draw.integers(0, 3))
        places = Places.of(np.zeros(3, np.int32), tokens)
        found = np.empty((3, 4), np.int32)
        for step in range(8):
            look_up(tokens, np.arange(3), known, *places, shortest, longest, found)
            for row in range(3):
                right = looked_up(tokens[row, : known[row]], shortest, longest, 4)
                assert found[row].tolist() == right
            known += draw.integers(0, 6, 3).astype(np.int32)
            if step == 4:
                tokens[1], known[1] = draw.integers(0, 5, 400), draw.integers(1, 300)
                places.looked_R[1] = 0
