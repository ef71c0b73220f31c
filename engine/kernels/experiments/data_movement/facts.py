"""The paper's cache hierarchy, thresholds and classes, read from `datasets/data_movement.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from engine.core.paths import dataset


@cache
def facts() -> Mapping[str, Mapping[str, Any]]:
    """Tables `hierarchy`, `core`, `thresholds` and `classes`."""
    return tomllib.loads(dataset("data_movement.toml").read_text())
