"""Measured costs: what passes and transfers took on real ranks of a pipeline, from their records,
and how far their gradients are from one process's."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from statistics import fmean

import numpy as np

from engine.core import tags
from engine.core.difference import relative
from engine.core.events import Span
from engine.distributed.record import Record
from engine.models.reference import dense
from engine.training.losses.language import fresh_weights
from engine.training.pipeline.tiny_model import TinyModel
from engine.training.plan.actions import KINDS, RECEIVES, SENDS, Kind, Plan
from engine.training.plan.columns import CODES
from engine.training.plan.times import Costs
from engine.training.stages.program import NAMES, said
from engine.training.stages.ranks import WAIT
from engine.training.stages.stage import cross_entropy

MOVING = {NAMES[kind] for kind in (*SENDS, *RECEIVES)}  # spans of a rank that are no pass


def gradient_error(tiny: TinyModel, count: int, records: Iterable[Record]) -> float:
    """The largest difference to one process's gradients, each as a share of its largest number."""
    model = tiny.config()
    weights = fresh_weights(model, tiny.seed)
    for weight in weights.values():
        weight.requires_grad_()
    for tokens, target in tiny.microbatches(count):
        (cross_entropy(dense(model, weights, tokens), target) / count).backward()
    found = {name: record.array(name) for record in records for name in record.arrays}
    errors = []
    for name, weight in weights.items():
        assert weight.grad is not None
        errors.append(relative(found[name], weight.grad.numpy()))
    return max(errors)


def measured_costs(plan: Plan, records: list[Record], together: bool) -> Costs:
    """What ranks told of a plan: what every pass took, and means of what they do between them.

    These are, by pair of ranks, the time from the end of a pass until its tensor was with a rank
    that stood waiting for it (of all pairs where nobody waited; nought where none did); and, of
    each kind of pass on each stage, that from its end to its rank's next pass, where what that
    needs had had time to come.
    """
    took, after, each = _Means(), _Means(), dict[tuple[str, str], float]()
    made = {(span.name, span.tag): span.stop for _, _, span in _passes(records)}
    between = _transfers(plan, records, made)
    for before, waits, span in _passes(records):
        each[span.name, span.tag] = span.stop - span.start
        took.add(_kind(span), span.stop - span.start)
        if before is not None and (
            waits is None or _ready(made, span) + between[_way(plan, span)] <= waits.start
        ):
            after.add(_kind(before), span.start - before.stop)
    passes, rest = np.zeros((2, len(CODES), plan.stages))
    for kind in KINDS.values():
        for stage in range(plan.stages):
            key = NAMES.get(kind, kind.value), stage
            passes[CODES[kind], stage], rest[CODES[kind], stage] = took.of(key), after.of(key)
    actions = [action for rank in plan.ranks for action in rank]
    own = [each.get((NAMES.get(a.kind, a.kind.value), said(a)), 0.0) for a in actions]
    return Costs(passes, between, together, rest, np.array(own))


class _Means:
    """Means of seconds by what they are of."""

    def __init__(self) -> None:
        self.found: defaultdict[object, list[float]] = defaultdict(list)

    def add(self, key: object, seconds: float) -> None:
        self.found[key].append(seconds)

    def of(self, key: object) -> float:
        """Nought where there are none."""
        return fmean(self.found[key]) if key in self.found else 0.0


def _passes(records: list[Record]) -> Iterator[tuple[Span | None, Span | None, Span]]:
    """(the pass before on its rank, the wait between, a pass or an end of the step), rank by rank;
    None where there is none."""
    for record in records:
        before: Span | None = None
        waits: Span | None = None
        for event in record.events:
            if not isinstance(event, Span) or event.name in MOVING:
                continue
            if event.name == WAIT:
                waits = event
            else:
                yield before, waits, event
                before, waits = event, None


def _kind(span: Span) -> tuple[str, int]:
    return span.name, int(tags.facts(span.tag)["stage"])


def _beside(span: Span) -> int:
    """The stage that makes what a pass needs."""
    return _kind(span)[1] + (-1 if span.name == Kind.F.value else 1)


def _way(plan: Plan, span: Span) -> tuple[int, int]:
    """The ranks that what a pass needs comes from and goes to."""
    return plan.rank_of[_beside(span)], plan.rank_of[_kind(span)[1]]


def _ready(made: dict[tuple[str, str], float], span: Span) -> float:
    """When the tensor that a pass needs was made; `made`: when passes ended, by name and tag."""
    tag = span.tag.replace(f"stage={_kind(span)[1]}", f"stage={_beside(span)}")
    makers = (Kind.F,) if span.name == Kind.F.value else (Kind.B, Kind.I)
    return max(made.get((kind.value, tag), 0.0) for kind in makers)


def _transfers(plan: Plan, records: list[Record], made: dict[tuple[str, str], float]) -> np.ndarray:
    ranks, ways, every = len(plan.ranks), _Means(), _Means()
    for _, waits, span in _passes(records):
        if waits is None or waits.tag != span.tag:  # where transfers block, of another pass
            continue
        ready = _ready(made, span)
        if waits.start <= ready:
            ways.add(_way(plan, span), waits.stop - ready)
            every.add(None, waits.stop - ready)
    between = np.full((ranks, ranks), every.of(None))
    for pair in product(range(ranks), repeat=2):
        if pair in ways.found:
            between[pair] = ways.of(pair)
    return between
