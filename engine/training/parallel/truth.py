"""Reference training in one process, in float64, that losses, gradients and weights are held to."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.core.difference import largest, relative
from engine.distributed.record import Record
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.rank_main import fresh
from engine.training.parallel.tensor.shards import joined, splits
from engine.training.parallel.zero.zero import Learning

Found = dict[str, Tensor]


def truth(config: MeshTrainingConfig) -> tuple[Tensor, Found, Found]:
    """(losses, gradients of the last step, weights after it) of the dense forward."""
    model = config.model.model()
    weights = {name: nn.Parameter(w.double()) for name, w in fresh(config).items()}
    optimizer = adamw(weights, config.learning)
    losses = []
    for step in range(config.steps):
        ids = config.ids(step)
        optimizer.zero_grad()
        logits_BTV = dense(model, weights, ids[:, :-1])
        loss = F.cross_entropy(logits_BTV.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        for weight in weights.values():
            if weight.grad is None:  # an expert that no token found learns nothing, and decays
                weight.grad = torch.zeros_like(weight)
        losses.append(loss.detach())
        if step + 1 < config.steps:
            optimizer.step()
    slopes = {name: w.grad for name, w in weights.items() if w.grad is not None}
    gradients = {name: grad.clone() for name, grad in slopes.items() if grad.any()}
    optimizer.step()
    return torch.stack(losses), gradients, {name: w.detach() for name, w in weights.items()}


def adamw(parameters: Mapping[str, nn.Parameter], learning: Learning) -> torch.optim.AdamW:
    """torch's own over these parameters; it decays matrices only."""
    matrices = [p for p in parameters.values() if p.ndim > 1]
    vectors = [p for p in parameters.values() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": learning.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=learning.rate, betas=(learning.beta1, learning.beta2), eps=learning.eps
    )


def whole(
    config: MeshTrainingConfig, records: Sequence[Record], kind: str, data: int, context: int
) -> Found:
    """`kind` (gradient, weight) as the tensor ranks of one replica and context rank have it."""
    model = config.model.model()
    parameters = list(all_parameters(model))
    parts: list[Found] = [{} for _ in range(config.mesh.tensor)]
    for record in records:
        place = config.mesh.place(record.rank)
        if place["data"] == data and place["context"] == context:
            names = [p.name for p in parameters if f"{kind}/{p.name}" in record.arrays]
            found = {name: torch.from_numpy(record.array(f"{kind}/{name}")) for name in names}
            parts[place["tensor"]] |= found
    return joined(parameters, parts, splits(model, config.mesh.tensor))


def errors(config: MeshTrainingConfig, records: Sequence[Record]) -> dict[str, float]:
    """Largest error over all replicas of losses, of each gradient and of each weight, relative to
    the truth's largest number of that tensor."""
    losses, gradients, weights = truth(config)
    told = np.stack([record.array("losses") for record in records])
    found = {"loss": largest(told / losses.numpy(), 1.0)}
    for data in range(config.mesh.data):
        for context in range(config.mesh.context):
            for kind, right in (("gradient", gradients), ("weight", weights)):
                here = whole(config, records, kind, data, context)
                for name, tensor in right.items():
                    key = f"{kind}/{name}"
                    found[key] = max(found.get(key, 0.0), relative(here[name], tensor))
    return found


def of_place(record: Record, place: int) -> Record:
    """A record with one config's arrays, under their plain names."""
    prefix = f"{place}/"
    arrays = {
        name.removeprefix(prefix): array
        for name, array in record.arrays.items()
        if name.startswith(prefix)
    }
    return Record(record.rank, arrays=arrays)
