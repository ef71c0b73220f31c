"""Ownership: maps each rank of a mesh to the layers and weight shards it owns, and their bytes."""

from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters
from engine.models.tensors.parameter import Parameter
from engine.training.parallel.sharding_config import ShardingConfig
from engine.training.parallel.tensor.shards import part_of, splits, stage_parameters
from engine.training.parallel.zero.zero import Bytes
from engine.training.plan.actions import Plan
from engine.training.stages.stage import dealt


def layers_of(model: ModelConfig, plan: Plan | None, place: int) -> dict[int, range]:
    """The layers of each stage that pipeline rank `place` has; all in one without a plan."""
    if plan is None:
        return {0: range(model.layers)}
    cuts = dealt(model.layers, plan.stages)
    return {number: cuts[number] for number, home in plan.rank_of.items() if home == place}


def owned(sharding: ShardingConfig, model: ModelConfig, rank: int) -> dict[str, Parameter]:
    """The parameters of a rank by name, each as the tensor rank's part, in one order for all."""
    place = sharding.mesh.place(rank)
    parameters = list(all_parameters(model))
    if sharding.planned:
        layers = layers_of(model, sharding.plan(), place["pipeline"]).values()
        names = {
            parameter.name
            for part in layers
            for parameter in stage_parameters(
                model, part, part.start == 0, part.stop == model.layers
            )
        }
        parameters = [parameter for parameter in parameters if parameter.name in names]
    tensor = sharding.mesh.tensor
    split = splits(model, tensor)
    return {each.name: part_of(each, split[each.name], tensor) for each in parameters}


def state_bytes(sharding: ShardingConfig, model: ModelConfig, rank: int) -> Bytes:
    """Bytes of weights, gradients and optimiser states that a rank holds, by formula: between a
    backward and its update, the moments as after it."""
    mesh, place = sharding.mesh, sharding.mesh.place(rank)
    shapes = [part.shape for part in owned(sharding, model, rank).values()]
    at = place["data"] * mesh.context + place["context"]
    return sharding.zero.formula(shapes, mesh.data * mesh.context, at)
