"""What each rank of a mesh holds of a model: which layers, and of which weights a part."""

from engine.models.config import ModelConfig
from engine.models.parameters import Parameter, all_parameters
from engine.training.parallel.dealing import Dealing
from engine.training.parallel.shards import part_of, splits, stage_parameters
from engine.training.plan.actions import Plan
from engine.training.stages.stage import dealt


def layers_of(model: ModelConfig, plan: Plan | None, place: int) -> dict[int, range]:
    """The layers of each stage that pipeline rank `place` has; all in one without a plan."""
    if plan is None:
        return {0: range(model.layers)}
    cuts = dealt(model.layers, plan.stages)
    return {number: cuts[number] for number, home in plan.rank_of.items() if home == place}


def held(dealing: Dealing, model: ModelConfig, rank: int) -> dict[str, Parameter]:
    """The parameters of a rank by name, each as the tensor rank's part, in one order for all."""
    place = dealing.mesh.place(rank)
    parameters = list(all_parameters(model))
    if dealing.planned:
        layers = layers_of(model, dealing.plan(), place["pipeline"]).values()
        names = {
            parameter.name
            for part in layers
            for parameter in stage_parameters(
                model, part, part.start == 0, part.stop == model.layers
            )
        }
        parameters = [parameter for parameter in parameters if parameter.name in names]
    tensor = dealing.mesh.tensor
    split = splits(model, tensor)
    return {each.name: part_of(each, split[each.name], tensor) for each in parameters}
