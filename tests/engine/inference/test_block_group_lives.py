"""Swap by block groups under random operations: copies kept on the host have their holders too."""

from collections import Counter

import numpy as np
import pytest

from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from tests.engine.inference import play
from tests.engine.inference.small import engine, request, serve

GROUPS = {"kind": "block_groups", "room": 2, "overlaps": False}


def audit_host(held: Engine) -> None:
    """Each host page is free, or kept by its contents, or held by just those who wait for it."""
    host = held.cache.host
    waits = [each.host_pages for each in held.requests.values() if each.host_pages is not None]
    holders = Counter(page for pages in waits for page in pages.tolist())
    assert holders == {page: int(count) for page, count in enumerate(host.references) if count}
    kept, free = set(np.flatnonzero(host.kept).tolist()), host.free_pages().tolist()
    assert len(set(free)) == len(free) and not set(free) & (kept | set(holders))
    assert len(free) + len(kept | set(holders)) == host.total


class Life(play.Life):
    """Contents are checked by what executes it."""

    def check(self) -> None:
        audit_host(self.engine)
        swap = self.engine.scheduler.allocator.host
        assert swap._ways.keys() == swap.landing.keys()

    def end(self) -> None:
        self.finish()
        while self.engine.busy:
            self.engine.step()
        self.check()
        swap = self.engine.scheduler.allocator.host
        assert self.engine.cache.held == 0 and not self.engine.cache.host.references.any()
        assert not swap.landing


@pytest.mark.parametrize("part", range(2))
def test_every_copy_on_the_host_has_its_holders_after_every_operation(part, full, monkeypatch):
    def grouped(**fields) -> InferenceConfig:
        draw = np.random.default_rng(fields["step_tokens"] * 64 + fields["pages"])
        how = {"room": int(draw.choice([0, 1, 3, 60])), "overlaps": bool(draw.random() < 0.7)}
        how["reuses"] = bool(draw.random() < 0.8)
        return InferenceConfig(**fields | {"preemption": {"kind": "block_groups", **how}})

    monkeypatch.setattr(play, "InferenceConfig", grouped)
    seeds, operations = (250, 300) if full else (10, 60)
    for seed in range(part * seeds, (part + 1) * seeds):
        life = Life(seed, states=seed % 5 == 0)
        try:
            for _ in range(operations):
                life.play()
            life.end()
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault


def test_a_reset_forgets_the_copies_on_the_host():
    held, _ = engine(preemption=GROUPS, host_pages=32)
    serve(held, [request(20)])
    assert held.cache.host.free < 32
    held.reset()
    held.hear()
    assert held.cache.host.free == 32 and not held.cache.cached
    again = request(20)
    serve(held, [again])
    assert again.reused == 0


def test_who_leaves_before_it_has_begun_leaves_the_copies_it_waited_for():
    held, _ = engine(preemption=GROUPS, host_pages=32, prefix_sharing=False, pages=12)
    serve(held, [request(20)])
    held.add(request(20, 1, max_tokens=20))
    held.step()
    late = request(24)
    late.prompt[:20] = request(20).prompt
    held.add(late)
    held.step()
    assert late.host_pages is not None and held.intake.withdraw(late)
    assert late.host_pages is None and not held.cache.host.references.any()


@pytest.mark.parametrize("batching", ["prefill_first", "one_instance", "same_length"])
def test_others_decode_while_pages_are_on_their_way(batching):
    groups = {"kind": "block_groups", "room": 2}
    held, _ = engine(batching=batching, preemption=groups, host_pages=32, prefix_sharing=False)
    stays, leaves = request(12, max_tokens=20), request(12, 1, max_tokens=20)
    held.add(stays)
    held.add(leaves)
    for _ in range(6):
        held.step()
    scheduler = held.scheduler
    scheduler.allocator.host.copy_seconds = lambda pages_R: 1000.0
    scheduler.preempt(leaves, scheduler.view(held.number, held.clock.now()), "asked to")
    before, rows = int(scheduler.rows.known[stays.row]), scheduler.rows
    for step in range(1, 5):
        held.step()
        assert leaves.id in scheduler.allocator.host.landing
        assert int(rows.known[stays.row]) == before + step
    held.run()
    assert len(stays.generated) == len(leaves.generated) == 20
