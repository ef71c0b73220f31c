"""Answers of a small mixture of experts on ranks of this machine, whose experts are dealt to them,
and of one process that has them all."""

from typing import NamedTuple

import numpy as np

from engine.distributed.launch import launch
from engine.distributed.rank import Rank
from engine.inference.executors.tensors.expert_dispatch import dispatch
from engine.models.batch import pack
from engine.models.kv import PagedKV
from engine.models.loading.load import random_model
from engine.models.model import Model
from engine.training.derived_plans.config import small
from workbench.studies.serving._offloaded_ranks import RankChannel

FAMILY, PAGE, PAGES = "deepseek_v3", 16, 4  # a family, a page's tokens, pages of a sequence
SHORTEST, LONGEST = 6, 30  # tokens of prompts
TOKENS = "tokens"
WAYS = False, True  # whether tokens travel in 8 bits


class Asked(NamedTuple):
    """What ranks do: sequences of each, and tokens of each answer."""

    ranks: int
    sequences: int
    answer: int
    swapped: bool
    seed: int


def here(asked: Asked) -> np.ndarray:
    """Answers of one process, [ranks, way, sequences, answer]: as tokens travel whole (as with
    experts that nobody dispatches to), and in 8 bits."""
    found = []
    for rank in range(asked.ranks):
        ways = []
        for int8 in WAYS:
            model = random_model(small(FAMILY), asked.seed, "float32")
            if int8:
                dispatch(model, [None], _room(asked), True)
            ways.append(answers(model, prompts(asked, rank), asked))
        found.append(np.stack(ways))
    return np.stack(found)


def on_ranks(asked: Asked) -> tuple[np.ndarray, list[float]]:
    """The same of ranks, each with its own sequences, and bytes that a rank sent to experts, whole
    and in 8 bits."""
    records = launch(work, asked.ranks, asked, limit=300.0)
    sent = [[half.bytes for half in each.sent if half.task == "dispatch"] for each in records]
    ways = np.array(sent).reshape(asked.ranks, len(WAYS), -1).sum(2).mean(0)
    return np.stack([record.array(TOKENS) for record in records]), ways.tolist()


def work(rank: Rank, asked: Asked) -> None:
    """One rank from beginning to end."""
    rank.enter("serving")
    others, said = range(asked.ranks), []
    channels = [None if other == rank.rank else RankChannel(rank, other) for other in others]
    for int8 in WAYS:
        model = random_model(small(FAMILY), asked.seed, "float32")
        dispatch(model, channels, _room(asked), int8, asked.swapped)
        said.append(answers(model, prompts(asked, rank.rank), asked))
    rank.record.put(TOKENS, np.stack(said))


def prompts(asked: Asked, rank: int) -> list[list[int]]:
    """A rank's own."""
    random = np.random.default_rng([asked.seed, rank])
    lengths = random.integers(SHORTEST, LONGEST + 1, asked.sequences)
    vocab = small(FAMILY).vocab
    return [random.integers(0, vocab, length).tolist() for length in lengths]


def answers(model: Model, given: list[list[int]], asked: Asked) -> np.ndarray:
    """Likeliest tokens after each prompt, [sequences, answer]; a pass for each."""
    cache = PagedKV(model.spec, len(given) * PAGES, PAGE)
    pages = [list(range(n * PAGES, (n + 1) * PAGES)) for n in range(len(given))]
    chunks, starts, found = given, [0] * len(given), []
    for _ in range(asked.answer):
        logits_BV = model.forward(pack(chunks, starts, pages, PAGE), cache)
        found.append(logits_BV.argmax(-1).numpy())
        starts = [start + len(chunk) for start, chunk in zip(starts, chunks, strict=True)]
        chunks = [[int(token)] for token in found[-1]]
    return np.stack(found, 1)


def _room(asked: Asked) -> int:
    return LONGEST * asked.sequences
