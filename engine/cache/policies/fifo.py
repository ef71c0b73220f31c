"""First in, first out."""

from typing import Literal

from engine.cache.eviction import Ages, Eviction, counted


class FirstInFirstOut(Eviction):
    """The oldest page goes first, however often it was used since."""

    kind: Literal["fifo"] = "fifo"

    def worth(self, page: int, ages: Ages) -> float:
        return float(ages.born[page])

    def reason(self, page: int, ages: Ages, step: int) -> str:
        return f"oldest, filled {counted(step - int(ages.born[page]), 'step')} ago"
