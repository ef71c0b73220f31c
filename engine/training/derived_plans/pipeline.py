"""A training program as three functions; everything else is the same for all of them.

Redco (Tan et al., arXiv 2310.16355): `collate` turns examples into a batch, `loss` a batch into a
number, `predict` a batch into answers. What the model is, and how it is split, none of them knows.
Shape letters: B sequences, T tokens, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Logits = Callable[[Tensor], Tensor]  # logits_BTV of ids_BT
Example = Sequence[Sequence[int]]  # one or more sequences of one length


@dataclass(frozen=True)
class Pipeline:
    """What a person writes."""

    collate: Callable[[Sequence[Example]], Tensor]
    loss: Callable[[Logits, Tensor], Tensor]
    predict: Callable[[Logits, Tensor], Tensor]


def language_modelling() -> Pipeline:
    """Each example one sequence; the loss is the mean cross-entropy of the next token."""

    def collate(examples: Sequence[Example]) -> Tensor:
        return torch.tensor([example[0] for example in examples])

    def loss(logits: Logits, ids_BT: Tensor) -> Tensor:
        return F.cross_entropy(logits(ids_BT[:, :-1]).flatten(0, 1), ids_BT[:, 1:].flatten())

    def predict(logits: Logits, ids_BT: Tensor) -> Tensor:
        return logits(ids_BT)[:, -1].argmax(-1)

    return Pipeline(collate, loss, predict)


def preferences() -> Pipeline:
    """Each example a better and a worse sequence; the loss asks for a margin of log-probability.

    Direct preference optimisation (arXiv 2305.18290, equation 7) from a uniform reference.
    """

    def collate(examples: Sequence[Example]) -> Tensor:
        return torch.tensor([row for example in examples for row in example])

    def said(logits: Logits, ids_BT: Tensor) -> Tensor:
        lp_BTV = logits(ids_BT[:, :-1]).log_softmax(-1)
        return lp_BTV.gather(-1, ids_BT[:, 1:, None])[..., 0].sum(1)

    def loss(logits: Logits, ids_BT: Tensor) -> Tensor:
        better, worse = said(logits, ids_BT).unflatten(0, (-1, 2)).unbind(1)
        return -F.logsigmoid(0.1 * (better - worse)).mean()

    def predict(logits: Logits, ids_BT: Tensor) -> Tensor:
        return said(logits, ids_BT).unflatten(0, (-1, 2)).argmax(1)

    return Pipeline(collate, loss, predict)


def fit(
    pipeline: Pipeline, model: Callable[[], Logits], weights: Mapping[str, Tensor],
    examples: Sequence[Example], steps: int, rate: float,
) -> tuple[list[float], Tensor]:  # fmt: skip
    """(losses, answers after the last step) of gradient descent on all examples at once.

    `model` makes the forward anew from the weights, split or not.
    """
    batch, losses = pipeline.collate(examples), []
    for _ in range(steps):
        for weight in weights.values():
            weight.grad = None
        loss = pipeline.loss(model(), batch)
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            for weight in weights.values():
                if weight.grad is not None:
                    weight -= rate * weight.grad
    with torch.no_grad():
        return losses, pipeline.predict(model(), batch)
