"""What a step tells of the texts it computed: chunks of prompts, and whole texts with masks."""

from collections.abc import Iterator, Sequence

from engine.core.events import Span
from engine.inference.requests.step import Step


def told_chunks(step: Step, names: Sequence[str], start: float, now: float) -> Iterator[Span]:
    """A span for each, from `start` to `now`; its tag says which tokens. `names`: of requests by
    row."""
    first = step.decodes
    masked = set() if step.canvases_C is None else set(step.canvases_C.tolist())
    chunks = (column[first:].tolist() for column in (step.rows_B, step.starts_B, step.queries_B))
    for b, (row, begin, count) in enumerate(zip(*chunks, strict=True), first):
        what = "unmask" if b in masked else "prefill"
        yield Span(now, names[row], what, start, tag=f"{begin}:{begin + count}")
