"""CloudMatrix-Infer's checks: what an instance is asked, and that reuse is what the pool has."""

import pytest

from engine.core.config import update
from workbench.studies.serving._supernode.phase_rates import best_rate, decode_rate, decoding
from workbench.studies.serving._supernode.pooled_prompts import reused, rivals
from workbench.studies.serving.cloudmatrix384 import STUDY


def test_a_rate_is_requests_over_the_time_between_their_tokens() -> None:
    rate, each = decode_rate(decoding(STUDY.config, 512, 24, 16))
    assert rate == pytest.approx(16 / each)  # 8 of each die, two dies of an NPU


def test_no_batch_is_named_that_misses_its_objective() -> None:
    assert best_rate(STUDY.config, 320, 1e-6) == (0.0, 0)
    rate, batch = best_rate(STUDY.config, 320, 0.03)
    assert batch / rate <= 0.03


def test_prompts_that_nobody_has_seen_gain_nothing_by_a_pool() -> None:
    near = reused(STUDY.config, 0.0)
    assert reused(STUDY.config, 0.0, "vpc-400") == pytest.approx(near)
    assert reused(STUDY.config, 0.5) > near


def test_rivals_have_as_many_devices_and_as_much_memory() -> None:
    ours = STUDY.config
    pool = ours.pools.cache_pages
    for each in rivals(ours).values():
        assert each.replicas == ours.replicas
        assert each.replicas * each.engine.pages >= ours.replicas * ours.engine.pages + pool - 6
        assert update(each, {}).engine.executor == ours.engine.executor
