"""The six classes: which of them a kernel's counts say, by the paper's decision tree.

Temporal locality first, then the last-to-first miss ratio and its trend with the number of cores,
then misses per thousand instructions or arithmetic intensity. Thresholds: `datasets`.
"""

from dataclasses import dataclass
from statistics import median

from engine.kernels.experiments.data_movement.facts import facts

TREND = 0.3  # change of the miss ratio from fewest to most cores that counts as a trend (ours)
NONE = "none"


@dataclass(frozen=True)
class Profile:
    """Counts of one kernel. `mpki` and `lfmr`: by number of cores, fewest first."""

    spatial: float
    temporal: float
    intensity: float  # operations per L1 access
    mpki: tuple[float, ...]  # last-level misses per 1,000 instructions
    lfmr: tuple[float, ...]

    @property
    def trend(self) -> float:
        """Change of LFMR from the fewest cores to the most."""
        return self.lfmr[-1] - self.lfmr[0]


def classify(profile: Profile) -> str:
    """The class, or "none" where the counts fit no branch of the tree."""
    limit = facts()["thresholds"]
    many_misses = median(profile.mpki) >= limit["mpki"]
    through = median(profile.lfmr) >= limit["lfmr"]
    if profile.temporal < limit["temporal"]:
        if profile.trend <= -TREND and not many_misses:
            return "1c"
        if through:
            return "1a" if many_misses else "1b"
        return NONE
    if many_misses:
        return NONE
    if profile.trend >= TREND:
        return "2a"
    if through:
        return NONE
    return "2c" if profile.intensity >= limit["intensity"] else "2b"
