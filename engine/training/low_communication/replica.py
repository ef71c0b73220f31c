"""A replica: a tiny Llama as one flat vector, its own share of the text, its optimiser.

Shape letters: P parameters, R replicas, B windows, T tokens, V vocabulary.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.config import Config, knob
from engine.distributed.program import Compute, Program, Receive, Send
from engine.distributed.transport import Shape
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.reference import dense
from engine.training.data.windows import windows
from engine.training.loop.flat_adamw import FlatAdamW
from engine.training.losses.evaluate import score
from engine.training.losses.language import fresh_weights
from engine.training.low_communication.text import VOCABULARY, Text


class Learning(Config):
    """The tiny model and how each replica learns."""

    hidden: int = knob(32, "residual width", low=16, high=256)
    layers: int = knob(2, "transformer layers", low=1, high=16)
    context: int = knob(64, "window", low=8, high=512, unit="tokens")
    rows: int = knob(2, "windows in a replica's step", low=1, high=256)
    rate: float = knob(3e-3, "peak learning rate", low=1e-6, high=1.0, log=True)
    warmup: int = knob(8, "steps up to the peak rate", low=0, high=10_000, unit="steps")
    decay: int = knob(32, "last steps, down to no rate", low=0, high=10_000, unit="steps")
    weight_decay: float = knob(0.1, "AdamW's decay of matrices", low=0.0, high=1.0)
    beta1: float = knob(0.9, "AdamW's memory of gradients", low=0.0, high=0.999)
    beta2: float = knob(0.95, "AdamW's memory of squared gradients", low=0.5, high=0.9999)
    clip: float = knob(1.0, "largest norm of a replica's gradient", low=1e-3, high=1e3)
    judged: int = knob(2048, "held-out tokens in an evaluation", low=64, high=6000, unit="tokens")

    def model(self) -> ModelConfig:
        """A Llama with tied embeddings over characters."""
        return parse(
            {
                "architectures": ["LlamaForCausalLM"],
                "model_type": "llama",
                "vocab_size": VOCABULARY,
                "hidden_size": self.hidden,
                "num_hidden_layers": self.layers,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "head_dim": self.hidden // 2,
                "intermediate_size": 3 * self.hidden,
                "hidden_act": "silu",
                "max_position_embeddings": self.context,
                "rms_norm_eps": 1e-5,
                "rope_theta": 10_000.0,
                "tie_word_embeddings": True,
                "bos_token_id": 0,
                "eos_token_id": 0,
            }
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Which replica of how many, and the seed they share."""

    rank: int
    ranks: int
    seed: int = 0


class Replica:
    """One replica. `sent`: bytes it has put on the wire so far."""

    def __init__(self, learning: Learning, place: Place, text: Text) -> None:
        self.learning, self.place, self.text = learning, place, text
        # Its own part of the text: what the others read, it can only learn from them.
        self.reading = np.array_split(text.training, place.ranks)[place.rank]
        self.drawing = place.seed * 1009 + place.rank + 1  # which windows, wherever it stands later
        self.model = learning.model()
        fresh = fresh_weights(self.model, place.seed)
        self.names = {name: weight.shape for name, weight in fresh.items()}
        self.sizes = [weight.numel() for weight in fresh.values()]
        self.weights_P = torch.cat([weight.flatten() for weight in fresh.values()])
        decay = [
            torch.full((w.numel(),), learning.weight_decay if w.ndim > 1 else 0.0)
            for w in fresh.values()
        ]
        self.adamw = FlatAdamW(torch.cat(decay), learning.beta1, learning.beta2)
        self.gradient_P = torch.zeros_like(self.weights_P)
        self.sent = 0

    @property
    def flops(self) -> float:
        """Of one step, by the usual 6 · parameters · tokens."""
        return 6.0 * len(self.weights_P) * self.learning.rows * self.learning.context

    def computed(self, step: int) -> Generator[Any, Any, None]:
        """Compute this step's gradient."""
        task = f"gradient/{step}"
        yield Gradient(
            "gradient", lambda: self._gradient(step), self.flops, task, replica=self, step=step
        )

    def stepped(self, step: int, rate: float) -> Program[None]:
        """A training step of its own, unknown to the others."""
        yield from self.computed(step)
        update = self.adamw.update
        yield Compute("update", lambda: update(self.weights_P, self.gradient_P, rate))

    def send(self, target: int, packed: Tensor, task: str) -> Send:
        """A step that sends `packed` and counts it."""
        self.sent += packed.numel()
        return Send(target, [packed], task)

    def receive(self, source: int, size: int, task: str) -> Receive:
        """A step that makes room for `size` bytes."""
        return Receive(source, [Shape((size,), torch.uint8)], task)

    def held_out_loss(self) -> float:
        """Nats per character of the beginning of the held-out text, by these weights."""
        judged = self.text.held_out[: self.learning.judged + 1]
        return score(self.model, self._named(self.weights_P), judged, self.learning.context).loss

    def windows(self, step: int) -> Tensor:
        """ids_BT of a step, with the token after each."""
        rows, length = self.learning.rows, self.learning.context
        return torch.from_numpy(windows(self.reading, self.drawing, step, rows, length))

    def loss(self, weights_P: Tensor, ids_BT: Tensor) -> Tensor:
        """Nats per character of these windows, by these weights."""
        logits_BTV = dense(self.model, self._named(weights_P), ids_BT[:, :-1])
        return F.cross_entropy(logits_BTV.flatten(0, 1), ids_BT[:, 1:].flatten())

    def keep(self, gradient_P: Tensor) -> None:
        """Take this gradient, clipped, as the step's."""
        self.gradient_P = gradient_P
        norm = float(gradient_P.norm())
        if norm > self.learning.clip:
            self.gradient_P *= self.learning.clip / norm

    def _gradient(self, step: int) -> float:
        """Loss in nats per character; the clipped gradient is kept."""
        leaf_P = self.weights_P.detach().requires_grad_()
        loss = self.loss(leaf_P, self.windows(step))
        self.keep(torch.autograd.grad(loss, leaf_P)[0])
        return loss.item()

    def _named(self, flat_P: Tensor) -> dict[str, Tensor]:
        parts = flat_P.split(self.sizes)
        named = zip(self.names.items(), parts, strict=True)
        return {name: part.view(shape) for (name, shape), part in named}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient(Compute):
    """A replica's gradient, which may be computed together with that of others."""

    replica: Replica
    step: int


def gradients(asked: Sequence[Gradient]) -> list[float]:
    """The losses of these steps, found in one pass for all; each replica keeps its gradient.

    The replicas are of one job; a pass costs little more than one replica's, whose tensors are
    too small to keep a processor busy.
    """
    replicas = [step.replica for step in asked]
    if len(replicas) == 1:
        return [step.work() for step in asked]
    leaf_RP = torch.stack([replica.weights_P for replica in replicas]).requires_grad_()
    ids_RBT = torch.stack([r.windows(step.step) for r, step in zip(replicas, asked, strict=True)])
    losses_R = torch.func.vmap(replicas[0].loss)(leaf_RP, ids_RBT)
    (gradient_RP,) = torch.autograd.grad(losses_R.sum(), leaf_RP)
    for replica, gradient_P in zip(replicas, gradient_RP, strict=True):
        replica.keep(gradient_P)
    return losses_R.tolist()
