"""What the decode benchmark runs: one model of 125 million random weights, one set of requests.

The same numbers go to every engine: `ours` through the real engine with its scheduler, sampling and
cache, `theirs` through transformers' `generate` with its own cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.core.clock import WallClock
from engine.core.events import AnyEvent
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import RealExecutor, executor_for
from engine.inference.requests.request import Request, sampling
from engine.kernels.quantised.weight import Quantised, round_to_nearest
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.fused_step import Fused
from engine.models.loading.load import random_model, random_weights
from engine.models.loading.random_weights import RandomWeights
from engine.models.model import Model

SHAPE: dict[str, Any] = {
    "vocab_size": 32_000,
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
SEED = 0
PAGE = 16
PAGES = 1024
CODES = ("int8", "int4")
GROUP = 32  # inputs that share a scale, as in the peers' own formats


@dataclass(frozen=True)
class Ask:
    """A request: its prompt and how many tokens it wants."""

    prompt: list[int]
    tokens: int


def asks(count: int, prompts: tuple[int, int], tokens: tuple[int, int]) -> list[Ask]:
    """Requests of mixed lengths, evenly spread over the logarithm of a range as traffic is.

    The first has the longest prompt and the most tokens.
    """
    draw = np.random.default_rng(SEED)
    lengths = [np.exp(draw.uniform(*np.log(pair), count)).astype(int) for pair in (prompts, tokens)]
    lengths[0][0], lengths[1][0] = prompts[1], tokens[1]
    return [
        Ask(draw.integers(3, SHAPE["vocab_size"], int(length)).tolist(), int(wanted))
        for length, wanted in zip(*lengths, strict=True)
    ]


def model_config() -> ModelConfig:
    """The benchmark's model."""
    return parse(SHAPE | {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, "bench")


@dataclass
class Answered:
    """Tokens by request; seconds from the first request on, and from the last first token on."""

    tokens: list[list[int]]
    seconds: float
    decode_seconds: float = 0.0
    steps: int = 0

    def rate(self, alone: bool) -> float:
        """Tokens a second: after the first token for one request, over everything for many."""
        tokens = sum(map(len, self.tokens))
        return (tokens - 1) / self.decode_seconds if alone else tokens / self.seconds


class Rounded(RandomWeights):
    """The random weights with every matrix, the head too, in codes of few bits by groups of 32."""

    holds_codes = True

    def __init__(self, codes: str) -> None:
        super().__init__(model_config(), SEED)
        self.format = codes

    def codes(self, name: str) -> Quantised | None:
        """A matrix as codes; None for the embedding, of which a token reads one row."""
        if "proj" not in name and "lm_head" not in name:
            return None
        return round_to_nearest(self[name], self.format, GROUP)


class Ours:
    """The real engine on packed weights: float32, bfloat16, or `CODES` beside a float32 cache;
    `activations`: as `Model` takes them."""

    def __init__(self, dtype: str, activations: str = "auto") -> None:
        plain = "float32" if dtype in CODES else dtype
        self.config = InferenceConfig(
            dtype=plain, page_size=PAGE, pages=PAGES, max_running=64, step_tokens=512,
            prefix_sharing=False,
        )  # fmt: skip
        if dtype in CODES:
            self.model = Model(model_config(), Rounded(dtype), activations=activations)
        else:
            self.model = random_model(model_config(), SEED, dtype)

    @cached_property
    def executor(self) -> RealExecutor:
        """Made once: its cache is memory too."""
        return executor_for(self.config, self.model, "bench")

    def weight_bytes(self) -> int:
        """Bytes of weights a decode step reads."""
        assert isinstance(self.model.fused, Fused)
        return self.model.fused.bytes

    def answer(
        self, wanted: list[Ask], emit: Callable[[AnyEvent], None] = lambda event: None
    ) -> Answered:
        """Serve the requests, all there at once."""
        engine = Engine(self.config, self.executor, WallClock(), emit)
        done: list[list[int]] = [[] for _ in wanted]
        first = {}

        def hear(place: int) -> Callable[[Request, int, str, float], None]:
            def on_token(request: Request, token: int, text: str, logprob: float) -> None:
                first.setdefault(place, perf_counter())
                done[place].append(token)

            return on_token

        start = perf_counter()
        for place, ask in enumerate(wanted):
            wish = sampling(max_tokens=ask.tokens, ignore_eos=True)
            request = Request(np.array(ask.prompt, np.int32), wish, on_token=hear(place))
            engine.add(request)
        engine.run()
        stop = perf_counter()
        return Answered(done, stop - start, stop - max(first.values()), engine.number)


class Theirs:
    """transformers' `generate`: a static batch, padded left, run until the longest is done."""

    def __init__(self, dtype: str) -> None:
        with torch.device("meta"):
            self.model = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
        weights = random_weights(model_config(), SEED, dtype)
        self.model = self.model.to_empty(device="cpu").to(getattr(torch, dtype))
        self.model.load_state_dict(weights)
        rotary = self.model.model.rotary_emb  # its buffer is not in the checkpoint
        rotary.__init__(self.model.config)

    @torch.inference_mode()
    def answer(self, wanted: list[Ask]) -> Answered:
        """Generate for all at once; only wanted tokens count."""
        ids, mask = _pad([ask.prompt for ask in wanted])
        most = max(ask.tokens for ask in wanted)
        watch = _Watch()
        start = perf_counter()
        found = self.model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=most,
            min_new_tokens=most,
            do_sample=False,
            pad_token_id=0,
            streamer=watch if len(wanted) == 1 else None,
        )
        stop = perf_counter()
        rows = found[:, ids.shape[1] :].tolist()
        tokens = [row[: ask.tokens] for row, ask in zip(rows, wanted, strict=True)]
        return Answered(tokens, stop - start, stop - watch.first)


class _Watch:
    """A streamer that notes when the first token came."""

    def __init__(self) -> None:
        self.puts, self.first = 0, 0.0

    def put(self, value: Tensor) -> None:
        self.puts += 1
        if self.puts == 2:  # the prompt comes first
            self.first = perf_counter()

    def end(self) -> None:
        pass


def _pad(prompts: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    ids = torch.zeros(len(prompts), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    return ids, mask
