"""Spans of a step's operations: each kind with its flops, its bytes and its seconds.

In come measured or modelled times of parts and the work of the operations they cover; out go spans
that lie one after another from the step's beginning. Their lengths are true; their places are not,
since every layer runs each of them. Operations that run beside one another say their places.
"""

from collections.abc import Iterable, Iterator

from engine.core.events import Span
from engine.core.tags import tag
from engine.inference.requests.step import Step, StepPart

RESIDENT = 0.75  # of the last cache: a step that moves no more finds its data there


def phase_of(step: Step) -> str:
    """prefill, decode, or mixed: one matrix product serves both, so their times are not apart."""
    if not step.prefill_tokens:
        return "decode"
    return "mixed" if step.decodes else "prefill"


def covered(
    works: Iterable[tuple[str, float, float]], names: tuple[str, ...]
) -> tuple[float, float]:
    """Flops and bytes of the operations `names` among (name, flops, bytes)."""
    flops = moved = 0.0
    for name, work, size in works:
        if name in names:
            flops += work
            moved += size
    return flops, moved


def part_spans(
    step: Step, parts: list[StepPart], start: float, now: float, dtype: str, cache: float
) -> Iterator[Span]:
    """A span for each part, ending no later than `now`, in time order.

    `cache`: bytes of the last cache level (0: unknown); where the whole step moves less, its data
    is taken to be there.
    """
    phase, at = phase_of(step), start
    moved = sum(part.bytes for part in parts)
    resident = "L3" if 0 < moved <= RESIDENT * cache else ""
    shape = f"{step.tokens}_token" + ("s" if step.tokens != 1 else "")
    for part in parts:
        if part.start is not None:  # beside others
            begin = start + part.start
            facts = tag(mb=part.piece, phase=phase)
            yield Span(min(begin + part.seconds, now), part.name, part.variant, begin, tag=facts)
            continue
        stop = min(at + part.seconds, now)
        facts = tag(
            phase=phase, dtype=dtype, shape=shape, grade=part.grade, resident=resident, of="step",
            low=part.low, high=part.high,
        )  # fmt: skip
        yield Span(stop, part.name, part.variant, at, part.flops, part.bytes, facts)
        at = stop
