"""Whether weights fit this machine, asked before they are made rather than after it stalls."""

from engine.core.memory import require


def require_memory(needed: float, what: str) -> None:
    """Raises BadInput where `needed` bytes are more than this machine has left (where it says)."""
    advice = "take a smaller model or a narrower dtype, or the modelled executor"
    require(needed, what, advice)
