"""Public architectures by name: shapes in `datasets/models/configs.toml`, without weights."""

from typing import Any

from engine.core.paths import dataset
from engine.core.toml import load as load_toml
from engine.models.config import ModelConfig
from engine.models.families import parse

CONFIGS = "models/configs.toml"
FACTS = ("source", "licence")


def public() -> dict[str, dict[str, Any]]:
    """Public architectures by name: `config.json` fields, each table with its `source`."""
    return load_toml(dataset(CONFIGS))


def fields_of(facts: dict[str, Any]) -> dict[str, Any]:
    """The `config.json` fields of a table, without where they are from."""
    return {key: value for key, value in facts.items() if key not in FACTS}


def architecture(name: str, facts: dict[str, Any]) -> ModelConfig:
    """The config of a table of that name."""
    return parse(fields_of(facts), f"{CONFIGS}: {name}")
