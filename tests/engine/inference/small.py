"""Small engines to test with: over page memory that checks itself, or over a tiny real model."""

from typing import Any

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.events import Branch
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Tokens
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, sampling
from engine.models.families import parse
from engine.models.loading.load import random_model
from engine.models.model import Model
from tests.engine.inference.memory import VOCAB, PageMemory

TINY = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 211,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "eos_token_id": 2,
}


class Words:
    """A tokenizer whose token t reads as the character number 97 + t, or as half of one."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - 97 for letter in text]

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(97 + token) for token in tokens)


def config(**fields: Any) -> InferenceConfig:
    base = {"page_size": 4, "pages": 64, "max_running": 8, "step_tokens": 32}
    return InferenceConfig(**{**base, **fields})


def engine(
    tokenizer: Tokens | None = None, eos: tuple[int, ...] = (), **fields: Any
) -> tuple[Engine, list]:
    """An engine over page memory, and the list its events go to."""
    chosen, events = config(**fields), []
    memory = PageMemory(chosen.pages, chosen.host_pages, chosen.page_size, eos)
    return Engine(chosen, memory, VirtualClock(), events.append, tokenizer), events


def tiny_model() -> Model:
    return random_model(parse(TINY, "tiny"), seed=3)


def real_engine(model: Model, **fields: Any) -> tuple[Engine, list]:
    """An engine over a real model; the clock is virtual so that runs repeat."""
    chosen, events = config(**fields), []
    return Engine(
        chosen, executor_for(chosen, model, "tiny"), VirtualClock(), events.append
    ), events


def request(length: int = 10, draw: int = 0, vocab: int = VOCAB, **wish: Any) -> Request:
    prompt = np.random.default_rng(draw).integers(0, vocab, length).astype(np.int32)
    return Request(prompt, sampling(**{"max_tokens": 8, **wish}))


def serve(engine: Engine, requests: list[Request]) -> list[list[int]]:
    """The answers, all requests added at once."""
    for one in requests:
        engine.add(one)
    engine.run()
    assert all(one.over for one in requests)
    return [one.generated.tolist() for one in requests]


def states(events: list, thread: str) -> list[str]:
    """The states a thread went through, as its events say."""
    return [e.state for e in events if isinstance(e, Branch) and e.thread == thread]
