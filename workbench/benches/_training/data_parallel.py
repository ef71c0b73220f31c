"""A step of our data parallelism beside one of torch's DistributedDataParallel.

Both train copies of one transformer on the same ranks, tokens and AdamW, in turn within each round;
which is first changes every round.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from engine.core.config import update
from engine.distributed.launch import launch
from engine.distributed.mesh import Mesh, MeshShape
from engine.distributed.rank import Rank
from engine.distributed.torch_group import join_torch
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.mesh_run import own
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.rank_main import fresh
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.truth import adamw
from engine.training.parallel.zero.buckets import Buckets

WARM = 3  # rounds that are not counted
Step = Callable[[Tensor, Tensor], None]


class Case(NamedTuple):
    """A model and a share of tokens, and how often it is timed."""

    name: str
    ranks: int
    config: MeshTrainingConfig
    rounds: int


def rows(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each size of model, on as many ranks as there are cores here, and on four."""
    return [_row(case, say) for case in cases(full)]


def cases(full: bool) -> list[Case]:
    """Models of about 0.2, 3 and (in full) 14 million parameters."""
    sizes = {"small": (64, 2, 256), "middle": (256, 4, 512), "large": (512, 4, 2048)}
    found = []
    for ranks in (2, 4):
        for name, (hidden, layers, vocabulary) in sizes.items():
            if name == "large" and not full:
                continue
            changes = {
                "mesh.data": ranks, "batch": ranks, "tokens": 64, "model.hidden": hidden,
                "model.width": 3 * hidden, "model.layers": layers,
                "model.vocabulary": vocabulary, "limit": 600.0,
                "learning.eps": 1e-4,  # sums in another order must not part the weights
            }  # fmt: skip
            rounds = {"small": 60, "middle": 30, "large": 12}[name] * (2 if full else 1)
            found.append(Case(name, ranks, update(MeshTrainingConfig(), changes), rounds))
    return found


def _row(case: Case, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"{case.name} model on {case.ranks} ranks")
    records = launch(work, case.ranks, case, limit=case.config.limit)
    # A step is over when the last rank is done with it.
    ours, theirs = np.max([record.array("seconds") for record in records], axis=0).T
    ratios = ours / theirs
    return {
        "name": f"{case.name}-{case.ranks}",
        "what": f"data parallel, {records[0].array('parameters') / 1e6:.1f} M parameters",
        "ranks": case.ranks,
        "seconds": float(np.median(ours)),
        "peer_seconds": float(np.median(theirs)),
        "ratio": float(np.median(ratios)),
        "low": float(np.quantile(ratios, 0.25)),
        "high": float(np.quantile(ratios, 0.75)),
        "holds_to": "at most 1.05× torch's DDP",
    }


def work(rank: Rank, case: Case) -> None:
    """Both copies' steps on one rank: array seconds, a row (ours, theirs) a round."""
    config, mesh = case.config, Mesh(rank, MeshShape(data=case.ranks))
    alone, data = mesh.axis("tensor"), mesh.axis("data")
    parallel = Parallelism(alone, alone, config.spans(config.tokens), config.attention)
    models = [ShardedStage(config.model.model(), fresh(config), parallel) for _ in range(2)]
    steps = [ours(config, models[0], Buckets(list(models[0].parameters()), data)),
             theirs(rank, config, models[1])]  # fmt: skip
    ids, targets = own(config, config.ids(0), rank.rank, 0)
    found = np.zeros((WARM + case.rounds, 2))
    for turn in range(len(found)):
        for which in (0, 1) if turn % 2 else (1, 0):
            data.barrier()
            begun = perf_counter()
            steps[which](ids, targets)
            found[turn, which] = perf_counter() - begun
        rank.record.events.clear()
    for mine, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
    rank.record.put("seconds", found[WARM:])
    rank.record.put("parameters", np.array(sum(p.numel() for p in models[0].parameters())))


def ours(config: MeshTrainingConfig, model: ShardedStage, buckets: Buckets) -> Step:
    """A step whose gradients are summed in our buckets."""
    optimizer = adamw(model.everything(), config.learning)

    def step(ids_BT: Tensor, targets_BT: Tensor) -> None:
        optimizer.zero_grad()
        loss = model.loss(model(ids_BT), targets_BT) / (config.batch * config.tokens)
        loss.backward()
        buckets.finish()
        optimizer.step()

    return step


def theirs(rank: Rank, config: MeshTrainingConfig, model: ShardedStage) -> Step:
    """A step of the same model in torch's DDP, which averages; gradients are views of its buckets,
    as ours are."""
    join_torch(rank)
    wrapped = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = adamw(model.everything(), config.learning)
    share = config.batch * config.tokens / rank.ranks

    def step(ids_BT: Tensor, targets_BT: Tensor) -> None:
        optimizer.zero_grad()
        loss = model.loss(wrapped(ids_BT), targets_BT) / share
        loss.backward()
        optimizer.step()

    return step
