"""Many configs on one launch of ranks, which costs seconds; errors against one process's steps."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.core.config import update
from engine.distributed.launch import launch
from engine.distributed.record import Record
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.rank_main import work
from engine.training.parallel.truth import errors, of_place
from engine.training.pipeline.executors.mesh import EXACT_EPS

Changes = Mapping[str, Any]
EXACT = 1e-5  # float32 against float64, relative to a tensor's largest number


def launched(
    ranks: int, settings: Mapping[str, Changes], main: Callable[..., None] = work
) -> "Launched":
    """Every setting trained on the same `ranks` processes by `main`."""
    start = update(MeshTrainingConfig(), {"learning.eps": EXACT_EPS})
    configs = {name: update(start, changes) for name, changes in settings.items()}
    records = launch(main, ranks, list(configs.values()), limit=600)
    return Launched(configs, records)


class Launched:
    """What a launch left, by the name of the setting."""

    def __init__(self, configs: dict[str, MeshTrainingConfig], records: list[Record]) -> None:
        self.configs, self.records = configs, records

    def of(self, name: str) -> list[Record]:
        place = list(self.configs).index(name)
        return [of_place(record, place) for record in self.records]

    def errors(self, name: str) -> dict[str, float]:
        return errors(self.configs[name], self.of(name))
