"""What each rank of a mesh holds of weights, gradients and optimiser states, by formula."""

from engine.models.parameters import Parameter, all_parameters
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.pipelined import owned
from engine.training.parallel.shards import split_along, stage_parameters
from engine.training.parallel.zero import Bytes
from engine.training.stage import dealt


def formula(config: MeshTrainingConfig, rank: int) -> Bytes:
    """Bytes a rank holds between a backward and its update, the moments as after it."""
    mesh = config.mesh
    place = mesh.place(rank)
    model = config.model.model()
    parameters = list(all_parameters(model))
    if config.planned:
        plan = config.plan()
        layers = owned(plan, place["pipeline"], dealt(model.layers, plan.stages))
        parts = [
            stage_parameters(model, part, part.start == 0, part.stop == model.layers)
            for part in layers.values()
        ]
        parameters = [parameter for part in parts for parameter in part]
    shapes = [shard(parameter, mesh.tensor) for parameter in parameters]
    at = place["data"] * mesh.context + place["context"]
    return config.zero.formula(shapes, mesh.data * mesh.context, at)


def shard(parameter: Parameter, tensor: int) -> list[int]:
    """The shape of a tensor rank's part."""
    shape, dim = list(parameter.shape), split_along(parameter)
    if dim is not None:
        shape[dim] //= tensor
    return shape
