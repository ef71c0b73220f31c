"""Points of a larger drawing: runs of a study's driver that stop and pause with the run they are
part of, and share its progress."""

from typing import Any

from engine.core.config import Config
from engine.core.events import Closed
from engine.core.log import Log
from engine.core.run import Driver, Live
from workbench.claim import RunConfig


class Part(Live):
    """The live side of a point's run: it stands, steps and stops with `whole`.

    What a person says to the whole means nothing to a point and goes no further.
    """

    def __init__(self, whole: Live, seed: int | None = None) -> None:
        super().__init__(Log(), whole.seed if seed is None else seed, whole.study)
        self.whole = whole

    def poll(self, now: float) -> list[dict[str, Any]]:
        self.whole.poll(self.whole.log.duration)
        return super().poll(now)


def runner(driver: Driver, whole: Live, seed: int | None = None) -> RunConfig:
    """What runs `driver` here and now as a part of `whole`, under its seed or the one given. Raises
    Stopped where that is stopped, and what the driver raises."""

    def run(config: Config) -> Log:
        part = Part(whole, seed)
        part.poll(0.0)
        driver(config, part)
        part.emit(Closed(part.log.duration, "finished"))
        return part.log

    return run
