"""Small random models, and runs of threads whose every logit is held against the truth."""

from dataclasses import dataclass

import numpy as np
import torch

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.models.model import Model
from engine.reasoning.solving.method import Asked
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import LoadedModel, loaded_model_of
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.reference import logits
from engine.tasks.task import Problem, Verdict
from tests.engine.models.small import config as shape_of
from tests.engine.models.small import weights

PROMPT = [5, 9, 2, 44, 17, 30, 8]


@dataclass(frozen=True, slots=True)
class Numbers(Problem):
    """A prompt of token numbers for a model without words; whatever is said is wrong."""

    def check(self, text: str) -> Verdict:
        return Verdict(False, "nobody asked", text)


def numbers(tokens: list[int], number: int = 0, seed: int = 0) -> Asked:
    text = " ".join(map(str, tokens))
    return Asked(number, Numbers(text, text, ""), seed)


def tokens_of(problem: Problem) -> list[int]:
    return [int(word) for word in problem.prompt.split()]


class Letters:
    """A tokenizer for models without one: a token is a number in words of three letters."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 97 for letter in text]

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(token + 32) for token in tokens)


def settings(**changes) -> ReasoningConfig:
    plain = {
        "budget": 12, "step_tokens": 4, "page_size": 4, "keep_logits": True, "header": "",
        "sampling.ignore_eos": True,
    }  # fmt: skip
    return update(ReasoningConfig(), {**plain, **changes})


def loaded(config: ReasoningConfig, family="qwen3", *, plain=False, words=False) -> LoadedModel:
    shape = shape_of(family, max_position_embeddings=256)
    model = Model(shape, weights(shape), plain=plain)
    made = loaded_model_of(config, model, family, Letters() if words else None)
    for tensors in made.storage.kv.tensors:
        for pages in tensors.values():
            pages.fill_(float("nan"))  # what was never written must never be read
    return made


def reasoner(config: ReasoningConfig, events: list, family="qwen3", **how) -> Reasoner:
    """Ready to step: the prompt read, the workers started as a, b, c, …"""
    made = Reasoner(config, loaded(config, family, **how), VirtualClock(), events.append)
    made.read(PROMPT)
    for name in "abcdefgh"[: config.workers]:
        made.start(name)
    return made


def finish(reasoner: Reasoner) -> None:
    while reasoner.step():
        pass


def worst(reasoner: Reasoner) -> float:
    """The largest difference of any logit from a forward from scratch."""
    model, record = reasoner.loaded.model, reasoner.table.record
    want = logits(model.config, model.weights, record.tokens, record.seen())
    have = torch.from_numpy(np.concatenate([found for _, found in reasoner.kept]))
    return float((have - want).abs().max())
