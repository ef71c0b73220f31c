"""Gradient all-reduce on a described cluster: which algorithm is fastest, and how long it takes.

All stages and tensor ranks sum at once and share the links; the fastest algorithm is taken.
"""

from functools import cache

from engine.distributed.flows.collective_work import times
from engine.hardware.cluster import cluster
from engine.training.pipeline.cluster import OnCluster, places
from engine.training.pipeline.stage_costs.transformer import Transformer

FIGURES = 4  # of a size, beyond which two are one


def described(model: Transformer, name: str) -> Transformer:
    """`model` on the devices, nodes and network of a cluster. Raises BadInput for no such one."""
    found = cluster(name)
    far = found.topology(1).far.bandwidth
    facts = {
        "device": found.device,
        "node": found.node,
        "network": far * min(1.0, found.adapters / found.node),
        "scale_up": found.reached,
    }
    return model.model_copy(update=facts)


def gradient_sum(name: str, passes: Transformer, pipeline: int, size: float) -> tuple[str, float]:
    """(algorithm, seconds) for `size` bytes on each device. ("", 0) where there is nothing to sum.

    Raises BadInput where the cluster has too few devices.
    """
    shape = (pipeline, passes.data, passes.context, passes.tensor)
    if passes.data * passes.context == 1 or size <= 0:
        return "", 0.0
    return _summed(name, shape, float(f"{size:.{FIGURES}g}"))


@cache
def _summed(name: str, shape: tuple[int, int, int, int], size: float) -> tuple[str, float]:
    stages, replicas, context, tensor = shape
    found = places(OnCluster(name=name), stages, replicas, context, tensor)
    groups = [found.group(stage, part) for stage in range(stages) for part in range(tensor)]
    return next(iter(times(found.topology, "all_reduce", groups, found.beside(), size).items()))
