"""A small config with a knob of every type, and policies with knobs of their own."""

from typing import ClassVar, Literal

from engine.core.config import Choice, Config, Policy, knob


class Order(Policy):
    folder: ClassVar[str] = "tests.widgets.orders"


def _plain() -> Order:
    from tests.widgets.orders.plain import Plain

    return Plain()


class Nested(Config):
    depth: int = knob(2, "How deep.", low=1, high=8)


class Owned:
    """Owns a config, and notes each other one it becomes."""

    def __init__(self, config: Config, told) -> None:
        self.config, self.told = config, told

    def become(self, config: Config) -> None:
        if config != self.config:
            self.config = config
            self.told(config)


class Made(Config):
    """What a control panel is built from in tests."""

    workers: int = knob(4, "How many workers run side by side.", low=1, high=16)
    rate: float = knob(8.0, "Arrivals.", low=0.1, high=1000.0, unit="requests/s", log=True)
    pages: int = knob(400, "Pages of the cache.", low=16, high=100_000, unit="pages")
    share: float = knob(0.5, "A part of the whole.", low=0.0, high=1.0)
    chunked: bool = knob(True, "Prefill in chunks.")
    mode: Literal["fast", "slow"] = knob("fast", "How.")
    name: str = knob("plain", "A name.")
    seed: int = knob(0, "Seed.", low=0, high=2**31 - 1, group="workload")
    deadline: float | None = knob(None, "Give up after.", low=0, high=100, unit="s")
    order: Choice[Order] = knob(make=_plain, doc="Who goes first.")
    nested: Nested = knob(make=Nested, doc="Plain nested values.")
