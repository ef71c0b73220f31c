"""The families that a training may be of, as what a knob may be set to."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from engine.models.families import FAMILIES

# Ranks split neither a recurrent state nor keys that layers share, and heads of both have sizes of
# their own. LLaDA is not trained on the next token.
APART = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "nemotron_h", "gemma4_text", "llada")

if TYPE_CHECKING:
    Family: TypeAlias = str
else:
    Family = Literal[tuple(kind for kind, _ in FAMILIES.values() if kind not in APART)]
