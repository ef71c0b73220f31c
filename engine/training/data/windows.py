"""Texts as one stream of tokens: 16-bit numbers, cut into windows to learn from or to judge by.

Each file stands between its BOS and EOS. Which windows a step learns from depends on the seed and
the step alone, so a resumed run sees what the uninterrupted one would have seen.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from tokenizers import Tokenizer

from engine.core.errors import BadInput
from engine.training.data.corpus import Source
from engine.training.data.tokenizer import BOS, EOS

AT_ONCE = 32  # texts that are encoded between two looks at whether to stop


def token_stream(tokenizer: Tokenizer, sources: Sequence[Source]) -> np.ndarray:
    """uint16 ids of all `sources` in order, each between BOS and EOS."""
    if tokenizer.get_vocab_size() > 1 << 16:
        raise BadInput("tokenizer: more than 65,536 entries do not fit a 16-bit token stream")
    bos, eos = tokenizer.token_to_id(BOS), tokenizer.token_to_id(EOS)
    found = []
    # The library hears of no interrupt within a batch.
    for first in range(0, len(sources), AT_ONCE):
        few = tokenizer.encode_batch([s.text for s in sources[first : first + AT_ONCE]])
        found += [np.array([bos, *one.ids, eos], np.uint16) for one in few]
    return np.concatenate(found)


def _check_there(stream: np.ndarray) -> None:
    """Raises BadInput where the file that `stream` is mapped from was cut since: whoever reads on
    beyond its new end is ended by a signal, without a word and without a checkpoint."""
    held = getattr(stream, "_mmap", None)
    if held is not None and held.size() < len(held):
        name = getattr(stream, "filename", "token file")
        raise BadInput(f"{name}: shorter than when the training began; put it back, and repeat")


def windows(stream: np.ndarray, seed: int, step: int, rows: int, length: int) -> np.ndarray:
    """int64 ids of shape [rows, length + 1]: windows from anywhere in `stream`.

    Raises BadInput where the stream is shorter than one window.
    """
    _check_there(stream)
    last = len(stream) - length - 1
    if last < 0:
        raise BadInput(f"token stream: {len(stream)} tokens, fewer than a window of {length + 1}")
    starts = np.random.default_rng((seed, step)).integers(0, last + 1, rows)
    return stream[starts[:, None] + np.arange(length + 1)].astype(np.int64)


def cuts(stream: np.ndarray, length: int) -> Iterator[np.ndarray]:
    """int64 windows of `length + 1` ids at most, that predict every token but the first once."""
    for start in range(0, len(stream) - 1, length):
        _check_there(stream)
        yield stream[start : start + length + 1].astype(np.int64)
