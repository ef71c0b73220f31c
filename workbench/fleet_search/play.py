"""One fleet design played on the virtual clock: its figures under the objective."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.core.config import from_dict
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.life import FINISHED
from engine.fleet.measure import columns, served
from engine.fleet.run import run as drive
from workbench.fleet_search.asked import FleetSearch, Objective
from workbench.fleet_search.designs import Design

WORK = "workbench.fleet_search.play:play"
TOLD = (
    "requests", "finished", "refused", "good", "goodput", "late", "late_queueing", "slow",
    "tokens_per_second", "hit_rate", "watts", "seconds",
)  # fmt: skip
HOUR, MILLION = 3600.0, 1e6


@dataclass(frozen=True)
class Row:
    """A design and what came of it; `failed` says why there is nothing."""

    design: Design
    figures: dict[str, float] = field(default_factory=dict)
    failed: str = ""

    def meets(self, slo: Objective) -> bool:
        """Whether every request was served, and the objective's quantiles keep it."""
        told = self.figures
        if self.failed or told["refused"] or told["finished"] < told["requests"]:
            return False
        return told["ttft"] <= slo.ttft and told["tpot"] <= slo.tpot


def piece(asked: FleetSearch, config: FleetConfig) -> dict[str, Any]:
    """What `play` is given, as plain values."""
    from engine.core.config import to_dict

    slo = asked.slo
    return {"fleet": to_dict(config), "at": [slo.ttft_at, slo.tpot_at]}


def play(given: dict[str, Any]) -> dict[str, float]:
    """Serve the workload by one fleet; its figures as plain numbers. Raises BadInput."""
    config = from_dict(FleetConfig, given["fleet"])
    log = Run.execute(drive, config).log
    whole, told = served(log, config), columns(log)
    done = told["state"] == FINISHED
    first, answer = (told["first"] - told["arrival"])[done], told["answer"][done]
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (told["ended"][done] - told["first"][done]) / (answer - 1)
    found = {name: float(getattr(whole, name)) for name in TOLD}
    found["ttft"] = _at(first, given["at"][0])
    found["tpot"] = _at(each[answer > 1], given["at"][1])
    hours = whole.seconds / HOUR * devices(config)
    found["device_hours"] = hours / max(whole.tokens, 1) * MILLION
    found["cost"] = whole.cost
    found["utilisation"] = float(np.mean(whole.utilisation))
    return found


def devices(config: FleetConfig) -> int:
    """Devices of all replicas."""
    return config.replicas * getattr(config.engine.executor, "tensor_parallel", 1)


def _at(seconds: np.ndarray, share: float) -> float:
    """The smallest time that such a share keeps: one of those told, not between two."""
    if not len(seconds):
        return 0.0
    return float(np.quantile(seconds, share, method="inverted_cdf"))
