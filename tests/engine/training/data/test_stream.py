"""Token streams: marks around files, windows by seed and step, cuts that cover all."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.training.data.corpus import Source
from engine.training.data.tokenizer import train_tokenizer
from engine.training.data.windows import cuts, token_stream, windows


def test_every_file_stands_between_its_marks() -> None:
    tokenizer = train_tokenizer(["x = 1\n"], 300)
    stream = token_stream(tokenizer, [Source("a.py", "x = 1\n"), Source("b.py", "y")])
    assert stream.dtype == np.uint16
    assert stream[0] == 0 and stream[-1] == 1
    assert list(stream).count(0) == list(stream).count(1) == 2


def test_texts_are_encoded_few_at_a_time_so_that_an_interrupt_is_heard() -> None:
    class Counted:
        def __init__(self) -> None:
            self.rules, self.most = train_tokenizer(["x = 1\n"], 300), 0

        def __getattr__(self, name: str) -> object:
            return getattr(self.rules, name)

        def encode_batch(self, texts: list[str]) -> list:
            self.most = max(self.most, len(texts))
            return self.rules.encode_batch(texts)

    tokenizer, sources = Counted(), [Source(f"{n}.py", f"x = {n}\n") for n in range(100)]
    stream = token_stream(tokenizer, sources)
    assert tokenizer.most <= 32
    one = tokenizer.rules.encode(sources[77].text).ids
    assert np.array_equal(np.split(stream, np.flatnonzero(stream == 0))[78], [0, *one, 1])


def test_windows_depend_on_seed_and_step_alone() -> None:
    stream = np.arange(1000, dtype=np.uint16)
    first = windows(stream, seed=3, step=7, rows=4, length=16)
    assert first.shape == (4, 17)
    assert np.array_equal(first, windows(stream, seed=3, step=7, rows=4, length=16))
    assert not np.array_equal(first, windows(stream, seed=3, step=8, rows=4, length=16))
    assert (np.diff(first) == 1).all()


def test_windows_reach_both_ends_of_the_stream() -> None:
    stream = np.arange(20, dtype=np.uint16)
    seen = windows(stream, seed=0, step=0, rows=500, length=4)
    assert seen.min() == 0 and seen.max() == 19


def test_a_stream_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(BadInput, match="fewer than a window of 11"):
        windows(np.zeros(10, np.uint16), seed=0, step=0, rows=1, length=10)


@pytest.mark.parametrize("size", [2, 16, 17, 18, 33, 100])
def test_cuts_predict_every_token_but_the_first_once(size: int) -> None:
    stream = np.arange(size, dtype=np.uint16)
    targets = np.concatenate([cut[1:] for cut in cuts(stream, 16)])
    assert targets.tolist() == list(range(1, size))
