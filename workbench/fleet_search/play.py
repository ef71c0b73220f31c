"""One fleet design played on the virtual clock: its figures under the objective."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.core.config import from_dict
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.life import FINISHED
from engine.fleet.measure import columns, hourly, served
from engine.fleet.run import run as drive
from workbench.fleet_search.asked import FleetSearch, Objective
from workbench.fleet_search.designs import Design

WORK = "workbench.fleet_search.play:play"
TOLD = (
    "requests", "finished", "refused", "good", "late", "late_queueing", "slow",
    "tokens_per_second", "hit_rate", "watts", "seconds",
)  # fmt: skip
HOUR, MILLION = 3600.0, 1e6
FEW, ENDS = 10, (0.05, 0.95)  # requests; between which of them a rate is taken


@dataclass(frozen=True)
class Row:
    """A design and what came of it; `failed` says why there is nothing."""

    design: Design
    figures: dict[str, float] = field(default_factory=dict)
    failed: str = ""

    def meets(self, slo: Objective) -> bool:
        """Whether every request was served, and the objective's quantiles keep it."""
        return not self.failed and keeps(self.figures, slo)


def keeps(told: Mapping[str, float], slo: Objective) -> bool:
    """Whether figures keep the objective."""
    if told["refused"] or told["finished"] < told["requests"]:
        return False
    return told["ttft"] <= slo.ttft and told["tpot"] <= slo.tpot


def piece(asked: FleetSearch, config: FleetConfig) -> dict[str, Any]:
    """What `play` is given, as plain values."""
    from engine.core.config import to_dict

    return {"fleet": to_dict(config), "slo": to_dict(asked.slo)}


def play(given: dict[str, Any]) -> dict[str, float]:
    """Serve the workload by one fleet; its figures as plain numbers. Raises BadInput.

    Rates and costs are those of the load as it comes where the objective is kept, else of requests
    as they end.
    """
    config, slo = from_dict(FleetConfig, given["fleet"]), from_dict(Objective, given["slo"])
    log = Run.execute(drive, config).log
    whole, told = served(log, config), columns(log)
    done = told["state"] == FINISHED
    first, answer = (told["first"] - told["arrival"])[done], told["answer"][done]
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (told["ended"][done] - told["first"][done]) / (answer - 1)
    found = {name: float(getattr(whole, name)) for name in TOLD}
    found["ttft"] = _at(first, slo.ttft_at)
    found["tpot"] = _at(each[answer > 1], slo.tpot_at)
    found["utilisation"] = float(np.mean(whole.utilisation))
    times = told["arrival"] if keeps(found, slo) else told["ended"][done]
    lasted = found["lasted"] = _lasted(times, whole.seconds)
    found["goodput"] = whole.good * whole.requests / lasted
    hours = lasted / HOUR / max(whole.tokens, 1) * MILLION
    found["device_hours"] = hours * devices(config)
    found["cost"] = hours * hourly(config)
    return found


def _lasted(times: np.ndarray, seconds: float) -> float:
    """Seconds in which so many requests come, or end, where the first and the last do not count:
    those of a short workload would be its ramp and its drain. `seconds`: of few."""
    if len(times) < FEW:
        return seconds
    low, high = np.quantile(times, ENDS)
    return float(high - low) / (ENDS[1] - ENDS[0]) or seconds


def devices(config: FleetConfig) -> int:
    """Devices of all replicas."""
    return config.replicas * getattr(config.engine.executor, "tensor_parallel", 1)


def _at(seconds: np.ndarray, share: float) -> float:
    """The smallest time that such a share keeps: one of those told, not between two."""
    if not len(seconds):
        return 0.0
    return float(np.quantile(seconds, share, method="inverted_cdf"))
