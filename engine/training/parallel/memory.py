"""What each rank of a mesh holds of weights, gradients and optimiser states, by formula."""

from engine.models.parameters import Parameter, all_parameters
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.shards import split_along
from engine.training.parallel.zero import Bytes


def formula(config: MeshTrainingConfig, rank: int) -> Bytes:
    """Bytes a rank holds between a backward and its update, the moments as after it."""
    mesh = config.mesh
    place = mesh.place(rank)
    shapes = [shard(p, mesh.tensor) for p in all_parameters(config.model.model())]
    at = place["data"] * mesh.context + place["context"]
    return config.zero.formula(shapes, mesh.data * mesh.context, at)


def shard(parameter: Parameter, tensor: int) -> list[int]:
    """The shape of a tensor rank's part."""
    shape, dim = list(parameter.shape), split_along(parameter)
    if dim is not None:
        shape[dim] //= tensor
    return shape
