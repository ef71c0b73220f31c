"""The `quantization_config` of a model's config: which methods of quantised weights are read."""

from typing import Any

from engine.core.errors import BadInput

FIELD = "quantization_config"
METHODS = ("gptq", "awq", "compressed-tensors", "mxfp4")


def method_of(settings: Any, where: str) -> str:
    """The method that a config names. Raises BadInput for one that is not read."""
    named = settings.get("quant_method") if isinstance(settings, dict) else None
    if named not in METHODS:
        raise BadInput(
            f"{where}: field {FIELD!r} asks for {str(named)[:40]!r} weights; "
            f"supported are {', '.join(METHODS)}: give one of them or a float checkpoint"
        )
    return str(named)
