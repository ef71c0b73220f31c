"""Tensor-parallel plans that people wrote, one for each family, read with their source."""

import tomllib

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters
from engine.training.shard_rules.plan import Plan, Split

FACTS = "tensor_plans.toml"


def families() -> list[str]:
    """Those with a plan."""
    return sorted(tomllib.loads(dataset(FACTS).read_text(encoding="utf-8")))


def hand_plan(config: ModelConfig) -> Plan:
    """The split of every weight where heads, widths and vocabulary divide by the ranks."""
    plans = tomllib.loads(dataset(FACTS).read_text(encoding="utf-8"))
    if config.family not in plans:
        raise BadInput(f"family {config.family!r}: {FACTS} has no plan; there are {families()}")
    written = plans[config.family]
    found: Plan = {}
    for p in all_parameters(config):
        *_, module, last = p.name.split(".")
        split: Split = "whole"
        if module in written["rows"]:
            split = "rows"
        elif module in written["columns"] and last == "weight":
            split = "columns"
        found[p.name] = split
    return found
