"""What real ranks of a pipeline tell: their gradients' error, what passes and transfers took."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from engine.core import tags
from engine.core.difference import relative
from engine.core.events import Span
from engine.distributed.record import Record
from engine.models.reference import dense
from engine.training.language import fresh_weights
from engine.training.pipeline_program import NAMES
from engine.training.pipeline_ranks import WAIT
from engine.training.plan import KINDS, Plan
from engine.training.plan_columns import CODES
from engine.training.plan_times import Costs
from engine.training.stage import cross_entropy

if TYPE_CHECKING:
    from engine.training.on_ranks import OnRanks


def microbatches(asked: "OnRanks", count: int) -> list[tuple[Tensor, Tensor]]:
    """Drawn tokens and the ones after them."""
    drawn = torch.Generator().manual_seed(asked.seed)
    shape = (count, asked.rows, asked.sequence + 1)
    ids = torch.randint(0, asked.vocabulary, shape, generator=drawn)
    return [(each[:, :-1].clone(), each[:, 1:].clone()) for each in ids]


def gradient_error(asked: "OnRanks", count: int, records: Iterable[Record]) -> float:
    """The largest difference to one process's gradients, each as a share of its largest number."""
    model = asked.model()
    weights = fresh_weights(model, asked.seed)
    for weight in weights.values():
        weight.requires_grad_()
    for tokens, target in microbatches(asked, count):
        (cross_entropy(dense(model, weights, tokens), target) / count).backward()
    found = {name: record.array(name) for record in records for name in record.arrays}
    errors = []
    for name, weight in weights.items():
        assert weight.grad is not None
        errors.append(relative(found[name], weight.grad.numpy()))
    return max(errors)


def measured_costs(plan: Plan, records: list[Record], together: bool) -> Costs:
    """Means: of each pass by kind and stage, and of how long the tensors that a rank waited for
    were on their way, by pair of ranks (of all pairs where nobody waited; nought where none did).
    """
    took: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for record in records:
        for event in record.events:
            if isinstance(event, Span):
                stage = int(tags.facts(event.tag)["stage"])
                took[event.name, stage].append(event.stop - event.start)
    passes = np.zeros((len(CODES), plan.stages))
    for kind in KINDS.values():
        for stage in range(plan.stages):
            found = took.get((NAMES.get(kind, kind.value), stage))
            if found:
                passes[CODES[kind], stage] = fmean(found)
    return Costs(passes, _transfers(len(plan.ranks), records), together)


def _transfers(ranks: int, records: list[Record]) -> np.ndarray:
    ways: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for source, target, seconds in _waited_for(records):
        ways[source, target].append(seconds)
    every = [seconds for found in ways.values() for seconds in found]
    between = np.full((ranks, ranks), fmean(every) if every else 0.0)
    for pair, found in ways.items():
        between[pair] = fmean(found)
    return between


def _waited_for(records: list[Record]) -> Iterator[tuple[int, int, float]]:
    """(source, target, seconds from sent to taken) of messages that a rank stood waiting for."""
    begun = {(s.source, s.target, s.number): s.time for r in records for s in r.sent}
    for record in records:
        # A rank waits for one message at a time, and takes it when the wait is over.
        waits = [e for e in record.events if isinstance(e, Span) and e.name == WAIT]
        for half in record.received:
            left = begun[half.source, half.target, half.number]
            if any(wait.start <= left and wait.start < half.time <= wait.stop for wait in waits):
                yield half.source, half.target, half.time - left
