"""Drafts looked up by n-grams: where they end is kept of rows from step to step."""

import numpy as np

from engine.kernels.drafts import lookup
from engine.kernels.drafts.lookup import Places
from engine.models.families import parse
from engine.models.loading.load import random_model
from tests.engine.inference.small import TINY, serve
from tests.engine.inference.test_speculation import job, schedule, speculating


def test_what_is_looked_up_is_what_a_look_at_all_of_a_row_finds(monkeypatch, full):
    """Under preemption, forks and rows that move: what is kept of rows is never another's."""
    model = random_model(parse(TINY, "tiny"), seed=3)
    kept, checked = lookup.look_up, []

    def both(tokens_RW, rows_D, known_R, *given):
        *_, shortest, longest, drafts_DK = given
        kept(tokens_RW, rows_D, known_R, *given)
        anew = Places.of(np.zeros(len(known_R), np.int32), tokens_RW)
        found_DK = np.empty_like(drafts_DK)
        kept(tokens_RW, rows_D, known_R, *anew, shortest, longest, found_DK)
        assert (found_DK == drafts_DK).all()
        checked.append((drafts_DK >= 0).any())

    monkeypatch.setattr(lookup, "look_up", both)
    for seed in range(12 if full else 4):
        fields = schedule(np.random.default_rng(seed))
        if seed % 2:  # rows of quiet engines leave by another way
            fields |= {"quiet": True, "eviction": "lru", "ordering": "fcfs", "max_running": 4}
            fields |= {"batching": "decode_first", "preemption": "recompute", "pages": 400}
        held, _ = speculating(model, None, **fields)
        serve(held, [*job(np.random.default_rng(seed)), *job(np.random.default_rng(seed), n=2)])
    assert sum(checked) > (20 if full else 6)
