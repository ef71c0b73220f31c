"""What each rank of a mesh holds of weights, gradients and optimiser states, by formula."""

from engine.models.parameters import all_parameters
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.pipelined import owned
from engine.training.parallel.shards import part_of, splits, stage_parameters
from engine.training.parallel.zero import Bytes
from engine.training.stage import dealt


def formula(config: MeshTrainingConfig, rank: int) -> Bytes:
    """Bytes a rank holds between a backward and its update, the moments as after it."""
    mesh = config.mesh
    place = mesh.place(rank)
    model = config.model.model()
    parameters = {p.name: p for p in all_parameters(model)}
    if config.planned:
        plan = config.plan()
        layers = owned(plan, place["pipeline"], dealt(model.layers, plan.stages))
        parts = [
            stage_parameters(model, part, part.start == 0, part.stop == model.layers)
            for part in layers.values()
        ]
        parameters = {p.name: p for part in parts for p in part}
    split = splits(model, mesh.tensor)
    shapes = [part_of(p, split[name], mesh.tensor).shape for name, p in parameters.items()]
    at = place["data"] * mesh.context + place["context"]
    return config.zero.formula(shapes, mesh.data * mesh.context, at)
