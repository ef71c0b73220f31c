"""From `config.json` to a ModelConfig: one small function for each family."""

from engine.models.families.read import FAMILIES, parse, read_config

__all__ = ["FAMILIES", "parse", "read_config"]
