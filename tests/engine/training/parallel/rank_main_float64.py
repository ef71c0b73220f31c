"""Main function of ranks that train in float64."""

from unittest.mock import patch

from torch import Tensor

from engine.distributed.rank import Rank
from engine.training.parallel import rank_main
from engine.training.parallel.config import MeshTrainingConfig


def wide(config: MeshTrainingConfig) -> dict[str, Tensor]:
    return {name: weight.double() for name, weight in FRESH(config).items()}


FRESH = rank_main.fresh


def work(rank: Rank, configs: list[MeshTrainingConfig]) -> None:
    """Every config's steps, as `rank_main.work` has them, in float64."""
    with patch.object(rank_main, "fresh", wide):
        rank_main.work(rank, configs)
