"""Operations of a replica's step as spans, told as each is over: others' events come between."""

from collections.abc import Iterator

from engine.core.events import Span
from engine.inference.engine import Begun
from engine.inference.executors.executor import Facts
from engine.inference.executors.step_spans import part_spans


def operations(begun: Begun, slower: float, facts: Facts) -> Iterator[Span]:
    """Those of a profiled step whose seconds are `slower` times the device's, which its engine then
    tells no more; none of any other step."""
    result = begun.result
    parts = [
        part._replace(
            seconds=slower * part.seconds, start=None if part.start is None else slower * part.start
        )
        for part in result.parts
    ]
    result.parts = []
    start = begun.start + slower * (result.align_seconds + result.draft_seconds)
    end = begun.start + slower * result.seconds
    return part_spans(begun.step, parts, start, end, facts.dtype, facts.cache)
