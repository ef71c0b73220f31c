"""Embeddings in chunks: the same vectors, others' steps in between, prompts by turns."""

from collections import deque

import numpy as np
import pytest

from engine.inference.executors.tensors.embedding import Embedder
from tests.engine.inference.small import tiny_model
from workbench.live import embeddings as live
from workbench.live.embeddings import Embeddings


class Chunks:
    """An executor that counts the tokens it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []  # prompt, by its length, and tokens

    def embed(self, tokens_T: np.ndarray) -> "Prompt":
        return Prompt(self, len(tokens_T))


class Prompt:
    def __init__(self, executor: Chunks, length: int) -> None:
        self.executor, self.length, self.left = executor, length, length

    def go_on(self, most: int) -> np.ndarray | None:
        self.executor.asked.append((self.length, min(most, self.left)))
        self.left -= most
        return np.ones(2, np.float32) if self.left <= 0 else None


def test_a_prompt_in_chunks_has_the_vector_that_it_has_in_one():
    embedder, draw = Embedder(tiny_model()), np.random.default_rng(0)
    for length in (1, 7, 40):
        tokens_T = draw.integers(0, 211, length)
        whole_C = embedder.begin(tokens_T).go_on(512)
        one = embedder.begin(tokens_T)
        parts = [one.go_on(3) for _ in range(-(-length // 3))]
        assert [part is None for part in parts] == [True] * (len(parts) - 1) + [False]
        np.testing.assert_allclose(parts[-1], whole_C, atol=1e-6)
        assert np.linalg.norm(whole_C) == pytest.approx(1.0)
    assert len(embedder.idle) == 1, "each prompt takes over what the one before has left"


def test_beside_others_a_step_computes_one_small_chunk_and_prompts_take_turns():
    executor, held, ended = Chunks(), Embeddings(), []
    for length in (500, 500, 20):
        held.ask([1] * length, lambda vector, why, of=length: ended.append(of))
    for _ in range(3):
        held.step(executor, beside=True)
    assert ended == [20], "a short prompt waits for a chunk of each before it, not for all of them"
    while held.step(executor, beside=True):
        pass
    assert ended == [20, 500, 500]
    assert max(tokens for _, tokens in executor.asked) == live.BESIDE


def test_alone_a_prompt_is_computed_at_once():
    executor, held = Chunks(), Embeddings()
    held.ask([1] * 500, lambda vector, why: None)
    assert held.step(executor) and not held.step(executor)
    assert executor.asked == [(500, 500)]


@pytest.mark.parametrize("where", ["embed", "go_on"])
def test_whoever_s_prompt_takes_the_last_memory_hears_of_the_end_too(where, monkeypatch):
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Chunks if where == "embed" else Prompt, where, fails)
    held, heard = Embeddings(), []
    for _ in range(2):
        held.ask([1] * 20, lambda vector, why: heard.append(why))
    with pytest.raises(MemoryError):
        held.step(Chunks())
    held.refuse("spent")
    assert heard == ["spent"] * 2


def test_who_waits_and_who_has_begun_hear_of_an_end():
    held, heard = Embeddings(), []
    for _ in range(6):
        held.ask([1] * 500, lambda vector, why: heard.append((vector, why)))
    held.step(Chunks(), beside=True)
    held.refuse("gone")
    assert heard == [(None, "gone")] * 6 and not held.step(Chunks())


def test_two_threads_may_refuse_at_once():
    """The last that waits goes to the other between a look and the taking."""

    class Taken(deque):
        def __len__(self) -> int:
            return 1

    held = Embeddings()
    held._waiting = Taken()
    held.refuse("gone")
