"""The families the engine loads, as what a knob may be set to."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from engine.models.families import FAMILIES

if TYPE_CHECKING:
    Family: TypeAlias = str
else:
    Family = Literal[tuple(kind for kind, _ in FAMILIES.values())]
