"""Faults of a fleet: a replica that is killed and comes back, a slow one, links that are cut."""

from engine.core.config import Config, knob


class Faults(Config):
    """What goes wrong and when; by default nothing. Times in seconds since the run opened."""

    kill: int = knob(-1, "Replica that dies; -1: none", low=-1, high=99_999)
    kill_at: float = knob(5.0, "When it dies", low=0.0, high=1e9, unit="s")
    back_after: float = knob(
        0.0, "It is back, with an empty cache, after this; 0: never", low=0.0, high=1e9, unit="s"
    )
    notice: float = knob(0.5, "Until the router knows that it died", low=0.0, high=1e6, unit="s")
    straggler: int = knob(-1, "Replica that is slow; -1: none", low=-1, high=99_999)
    slowdown: float = knob(3.0, "Its steps take so many times as long", low=1.0, high=1e3, unit="×")
    cut_at: float = knob(0.0, "Links between replicas are cut", low=0.0, high=1e9, unit="s")
    cut_for: float = knob(0.0, "For so long; 0: never", low=0.0, high=1e9, unit="s")

    def slower(self, replica: int) -> float:
        """How many times as long the steps of a replica take."""
        return self.slowdown if replica == self.straggler else 1.0
