"""Main function of each mesh rank: its training steps, as spans of its lane and bytes held."""

import torch
from torch import Tensor

from engine.core.events import Mark
from engine.distributed.rank import Rank
from engine.training.losses.language import fresh_weights
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.mesh_run import Beginning, MeshRun, levels

STEP = "step"  # a mark where a rank begins one


def work(rank: Rank, configs: list[MeshTrainingConfig]) -> None:
    """Every config's steps, one after another; arrays are named by the config's place."""
    for place, config in enumerate(configs):
        train(rank, config, f"{place}/")


def begun(rank: Rank, config: MeshTrainingConfig) -> MeshRun:
    """The run of a config before its first step."""
    model = config.model.model()
    given = Beginning(model, fresh(config), config.learning, left_out=config.left_out)
    return MeshRun(rank, config, given)


def train(rank: Rank, config: MeshTrainingConfig, prefix: str = "") -> None:
    """The steps of one config. Leaves arrays gradient/NAME and weight/NAME of the tensor rank's
    parts, losses, and bytes: `peaks` after each forward, `held` after the last backward."""
    run = begun(rank, config)
    trained, record, losses = run.trained, rank.record, []
    for at in range(config.steps):
        rank.emit(Mark(rank.now(), rank.lane, STEP, f"step {at}"))
        losses.append(run.gradients(config.ids(at)))
        held = trained.held()
        last = at + 1 == config.steps
        run.update(config.learning.rate, keep=last)
    levels(rank, trained)
    told = len(record.events)
    record.put(f"{prefix}losses", torch.stack(losses).cpu().numpy())
    if run.peaks:
        record.put(f"{prefix}peaks", torch.tensor(run.peaks).numpy())
    for name, gradient in trained.gradients().items():
        record.put(f"{prefix}gradient/{name}", gradient.cpu().numpy().copy())
    for name, weight in trained.weights().items():
        record.put(f"{prefix}weight/{name}", weight.cpu().numpy())
    record.put(f"{prefix}held", torch.tensor(held).numpy())
    # What was gathered to be given back is no part of training.
    del record.events[told:]


def fresh(config: MeshTrainingConfig) -> dict[str, Tensor]:
    """The weights that all ranks start from, the norms' and biases' drawn too."""
    found = fresh_weights(config.model.model(), config.seed)
    draw = torch.Generator().manual_seed(config.seed)
    for weight in found.values():
        if weight.ndim == 1:
            weight += 0.1 * torch.randn(weight.shape, generator=draw)
        else:
            # Fresh weights are so small that softmax is flat and many gradients nearly nought.
            weight *= 4
    return found
