"""Public architectures by name: shapes in `datasets/models/configs.toml`, without weights."""

import re
from typing import Any

from engine.core.paths import dataset
from engine.core.toml import load as load_toml
from engine.models.config import ModelConfig
from engine.models.families import parse

CONFIGS = "models/configs.toml"
FACTS = ("source", "licence")
TUNED = re.compile(r"-(hf|instruct|chat|base|it|instruct-hf|chat-hf)$")  # after a shape's name


def public() -> dict[str, dict[str, Any]]:
    """Public architectures by name: `config.json` fields, each table with its `source`."""
    return load_toml(dataset(CONFIGS))


def called(name: str) -> str:
    """The public architecture that people mean by a name, or the name itself in lower case.

    Who publishes it and how it was tuned are no part of a shape (meta-llama/Llama-3.1-8B-Instruct),
    nor are hyphens; Llama 3 has the shapes of Llama 3.1.
    """
    lower = name.lower()
    short = TUNED.sub("", lower.rsplit("/", 1)[-1].removeprefix("meta-"))
    alike = {_letters(known): known for known in public()}
    alike = {word.replace("llama31", "llama3"): known for word, known in alike.items()} | alike
    return alike.get(_letters(short), lower)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name)


def fields_of(facts: dict[str, Any]) -> dict[str, Any]:
    """The `config.json` fields of a table, without where they are from."""
    return {key: value for key, value in facts.items() if key not in FACTS}


def architecture(name: str, facts: dict[str, Any]) -> ModelConfig:
    """The config of a table of that name."""
    return parse(fields_of(facts), f"{CONFIGS}: {name}")
