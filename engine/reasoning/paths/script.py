"""Paths of thought side by side and a summary after them, as one script (arXiv 2509.04475).

In come what everybody reads, what each path wrote and what the summary wrote; out comes who sees
whom, at which position, in which path: what a trainer and a forward from scratch need. Paths share
their positions, so the embedding of its path tells a key apart from its neighbours' at the same
position. Shape letters: N tokens.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from engine.reasoning.streams.script import Script


def side_by_side(
    prompt: Sequence[int], paths: Sequence[Sequence[int]], summary: Sequence[int]
) -> Script:
    """The prompt, then all paths from its end on, then the summary after the longest of them.

    A path sees the prompt and itself, the summary everything. `stream_N` is the path, 0 for the
    prompt and the summary, which carry no embedding.
    """
    parts = [prompt, *paths, summary]
    lengths = [len(part) for part in parts]
    after = len(prompt) + max(lengths[1:-1], default=0)
    begins = [0, *[len(prompt)] * len(paths), after]
    index_N = np.concatenate([np.arange(length) for length in lengths])
    part_N = np.repeat(np.arange(len(parts)), lengths)
    last = len(parts) - 1
    visible_NN = (part_N == part_N[:, None]) | (part_N == 0) | (part_N[:, None] == last)
    visible_NN &= np.tri(len(part_N), dtype=bool)
    return Script(
        tokens_N=np.array([token for part in parts for token in part], np.int64),
        stream_N=np.where(part_N == last, 0, part_N),
        index_N=index_N,
        positions_N=index_N + np.repeat(begins, lengths),
        visible_NN=visible_NN,
    )


def firsts(paths: Sequence[Sequence[int]], prompt: int) -> list[int]:
    """Where each path's first token lies in the script, and where the summary's does."""
    return list(accumulate((len(path) for path in paths), initial=prompt))
