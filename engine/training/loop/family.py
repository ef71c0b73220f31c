"""The families that a training may be of, as what a knob may be set to."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from engine.models.families import FAMILIES

# Ranks do not split a recurrent state, and its heads have sizes of their own.
RECURRENT = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")

if TYPE_CHECKING:
    Family: TypeAlias = str
else:
    Family = Literal[tuple(kind for kind, _ in FAMILIES.values() if kind not in RECURRENT)]
