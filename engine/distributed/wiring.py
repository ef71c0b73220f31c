"""Network topology of described ranks: which links a message holds on its way."""

from abc import abstractmethod

from engine.core.config import Policy


class Wiring(Policy):
    """Concrete ones lie one to a file in `wirings`."""

    folder = "engine.distributed.wirings"

    @abstractmethod
    def path(self, source: int, target: int, ranks: int) -> list[tuple[str, ...]]:
        """The hops from one rank to another; each is the names of what it holds while it lasts."""
