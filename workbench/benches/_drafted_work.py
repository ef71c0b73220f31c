"""A 125 million target and a draft made of its first layers, here and in transformers.

Random weights agree with no smaller model. So the target's later layers add little to what its
first ones say (`FADE`): its first layers alone, with its own norm and head, then say the same in
about two tokens of three, whoever runs them. Both sides have the same two models.
"""

from collections.abc import Mapping
from functools import cached_property
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from engine.inference.config import InferenceConfig
from engine.inference.executors.tensors.real_executor import RealExecutor, executor_for
from engine.models.families import parse
from engine.models.loading.load import random_weights
from engine.models.model import Model
from workbench.benches._decode_work import (
    PAGE,
    PAGES,
    SEED,
    SHAPE,
    Answered,
    Ask,
    Ours,
    model_config,
)

FIRST = 2  # layers of the draft
FADE = 0.05  # of what the later layers' matrices add
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
SMALL: dict[str, Any] = SHAPE | {"num_hidden_layers": FIRST}


def pair() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Weights of the target and of the draft by Hugging Face name."""
    weights = random_weights(model_config(), SEED)
    for name in weights:
        later = name.startswith("model.layers.") and int(name.split(".")[2]) >= FIRST
        if later and name.endswith(("o_proj.weight", "down_proj.weight")):
            weights[name] *= FADE
    small = parse(SMALL | LLAMA, "draft")
    return weights, {name: weights[name] for name in random_weights(small, SEED)}


class Drafted(Ours):
    """The real engine on the pair; `drafts` 0 decodes plainly."""

    def __init__(self, models: tuple[Model, Model], drafts: int) -> None:
        self.model, self.draft = models
        drafting = {"kind": "draft_model", "tokens": max(drafts, 1)}
        self.config = InferenceConfig(
            page_size=PAGE, pages=PAGES, max_running=1, step_tokens=512, prefix_sharing=False,
            speculation=drafting if drafts else "none",
        )  # fmt: skip
        self.drafts = drafts

    @cached_property
    def executor(self) -> RealExecutor:
        """Made once: its caches are memory too."""
        drafts = [self.draft] if self.drafts else []
        return executor_for(self.config, self.model, "bench", drafts=drafts)


def models(weights: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]) -> tuple[Model, Model]:
    """Target and draft for the engine."""
    return Model(model_config(), weights[0]), Model(parse(SMALL | LLAMA, "draft"), weights[1])


class Assisted:
    """transformers' `generate`, with the draft as `assistant_model` and `drafts` tokens each time;
    0 decodes plainly."""

    def __init__(self, weights: tuple[dict[str, Tensor], dict[str, Tensor]], drafts: int) -> None:
        self.model, draft = (_loaded(*each) for each in zip((SHAPE, SMALL), weights, strict=True))
        self.assistant: dict[str, Any] = {"assistant_model": draft} if drafts else {}
        how = draft.generation_config
        how.num_assistant_tokens, how.num_assistant_tokens_schedule = drafts, "constant"
        how.assistant_confidence_threshold = 0.0
        self.passes = 0
        self.model.register_forward_hook(self._passed)

    def _passed(self, *_: object) -> None:
        self.passes += 1

    @torch.inference_mode()
    def answer(self, wanted: list[Ask]) -> Answered:
        """Generate for one request."""
        [ask] = wanted
        ids, before, start = torch.tensor([ask.prompt]), self.passes, perf_counter()
        found = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=ask.tokens,
            min_new_tokens=ask.tokens, do_sample=False, pad_token_id=0, **self.assistant,
        )  # fmt: skip
        seconds = perf_counter() - start
        tokens = found[0, len(ask.prompt) :].tolist()
        return Answered([tokens], seconds, seconds, self.passes - before)


def _loaded(shape: dict[str, Any], weights: dict[str, Tensor]) -> LlamaForCausalLM:
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**shape)).eval()
    model = model.to_empty(device="cpu")
    model.load_state_dict(weights)
    rotary = model.model.rotary_emb  # its buffer is not in the checkpoint
    rotary.__init__(model.config)
    return model
