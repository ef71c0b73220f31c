"""What each rank of a mesh holds of weights, gradients and optimiser states, by formula."""

from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.holding import held
from engine.training.parallel.zero import Bytes


def formula(config: MeshTrainingConfig, rank: int) -> Bytes:
    """Bytes a rank holds between a backward and its update, the moments as after it."""
    mesh, place = config.mesh, config.mesh.place(rank)
    shapes = [part.shape for part in held(config, config.model.model(), rank).values()]
    at = place["data"] * mesh.context + place["context"]
    return config.zero.formula(shapes, mesh.data * mesh.context, at)
