"""What goes wrong in modelled training: passes of uneven length, devices that fail, and how often a
checkpoint is written against that."""

from engine.core.config import Config, knob

GROUP = "many steps"


class DescribedFaults(Config):
    """One step without any of it where all is left as it is."""

    steps: int = knob(1, "steps, one after another", low=1, high=100_000, group=GROUP)
    jitter: float = knob(
        0.0, "how much each pass's time varies (deviation of its logarithm; drawn with the run's "
        "seed)", low=0.0, high=2.0, group=GROUP,
    )  # fmt: skip
    mtbf: float = knob(0.0, "mean time between failures of one device; 0: none fails", low=0.0,
                       high=1e12, unit="s", group=GROUP)  # fmt: skip
    every: int = knob(0, "steps between checkpoints; 0: as Young and Daly advise", low=0,
                      high=100_000, group=GROUP)  # fmt: skip
    write: float = knob(10.0, "writing of a checkpoint, for which all wait", low=0.0, high=1e6,
                        unit="s", group=GROUP)  # fmt: skip
    restart: float = knob(60.0, "from a failure until training goes on", low=0.0, high=1e6,
                          unit="s", group=GROUP)  # fmt: skip

    @property
    def any(self) -> bool:
        """Whether there is more than one plain step to play."""
        return self.steps > 1 or self.jitter > 0 or self.mtbf > 0
