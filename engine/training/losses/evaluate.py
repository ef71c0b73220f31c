"""Evaluation: perplexity on held-out text, and how often a draft guesses its model's choice.

Shape letters: B windows, T tokens, V vocabulary.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine.models.config import ModelConfig
from engine.models.reference import dense
from engine.training.data.windows import cuts

ROWS = 8  # windows in one forward pass


@dataclass(frozen=True, slots=True)
class Score:
    """Total loss in nats over `tokens` predicted tokens."""

    nats: float
    tokens: int

    @property
    def loss(self) -> float:
        """Nats per token."""
        return self.nats / self.tokens

    def bits_per_byte(self, size: int) -> float:
        """Bits per byte of a text of `size` bytes: comparable across tokenizers."""
        return self.nats / math.log(2) / size


def score(
    config: ModelConfig, weights: dict[str, Tensor], stream: np.ndarray, length: int
) -> Score:
    """The float32 loss over `stream` in windows of `length` that know nothing before them."""
    nats, tokens = 0.0, 0
    for ids_BT in _batches(stream, length):
        with torch.inference_mode():
            logits_BTV = dense(config, weights, ids_BT[:, :-1]).float()
        targets = ids_BT[:, 1:].flatten()
        nats += F.cross_entropy(logits_BTV.flatten(0, 1), targets, reduction="sum").item()
        tokens += targets.numel()
    return Score(nats, tokens)


def agreement(
    draft: tuple[ModelConfig, dict[str, Tensor]],
    model: tuple[ModelConfig, dict[str, Tensor]],
    stream: np.ndarray,
    length: int,
) -> float:
    """The share of positions of `stream` where both would choose the same next token greedily."""
    same, tokens = 0, 0
    for ids_BT in _batches(stream, length):
        with torch.inference_mode():
            choices = [dense(*one, ids_BT[:, :-1]).argmax(-1) for one in (draft, model)]
        same += int((choices[0] == choices[1]).sum())
        tokens += choices[0].numel()
    return same / tokens


def greedy(
    config: ModelConfig, weights: dict[str, Tensor], prompt: list[int], count: int
) -> list[int]:
    """`count` tokens after `prompt`, each the likeliest; recomputed whole, for short texts only."""
    ids = list(prompt)
    for _ in range(count):
        with torch.inference_mode():
            logits_BTV = dense(config, weights, torch.tensor([ids]))
        ids.append(int(logits_BTV[0, -1].argmax()))
    return ids[len(prompt) :]


def _batches(stream: np.ndarray, length: int) -> Iterator[Tensor]:
    """Equal windows together, ROWS at most; a shorter last one alone."""
    held: list[np.ndarray] = []
    for cut in cuts(stream, length):
        if len(cut) <= length:
            yield torch.from_numpy(cut)[None]
            continue
        held.append(cut)
        if len(held) == ROWS:
            yield torch.from_numpy(np.stack(held))
            held = []
    if held:
        yield torch.from_numpy(np.stack(held))


class Linears(TorchFunctionMode):
    """Within it, every product with a weight of `names` is given by `called(name, x, weight)`."""

    def __init__(
        self, weights: Mapping[str, Tensor], called: Callable[[str, Tensor, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.names = {id(tensor): name for name, tensor in weights.items() if "proj" in name}
        self.called = called

    def __torch_function__(
        self, func: Any, kinds: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = self.names.get(id(args[1])) if func is F.linear and len(args) > 1 else None
        if name is None:
            return func(*args, **(kwargs or {}))
        return self.called(name, args[0], args[1])
