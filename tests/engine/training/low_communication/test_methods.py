"""Methods against what they must reduce to, and against their own algebra."""

import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Move
from engine.training.low_communication import metrics
from engine.training.low_communication.described_curves import needed_bandwidth
from engine.training.low_communication.method import Traffic
from engine.training.low_communication.methods.noloco import partner
from engine.training.low_communication.replica import Place
from tests.engine.training.low_communication.small import log_of, replicas_of, small, weights

METHODS = ("synchronous", "diloco", "streaming_diloco", "noloco", "one_bit_adam", "robust")
DILOCO = {"method": "diloco", "method.every": 4}


def test_one_fragment_without_delay_mix_or_packing_is_diloco():
    plain = weights(small(**DILOCO))
    whole = weights(
        small(**{
            "method": "streaming_diloco", "method.every": 4, "method.fragments": 1,
            "method.delay": 0, "method.mix": 0.0, "method.codec": "float32",
        })
    )  # fmt: skip
    for ours, theirs in zip(whole, plain, strict=True):
        assert torch.equal(ours, theirs)


def test_diloco_that_takes_the_mean_leaves_all_the_same_and_others_do_not():
    together = weights(small(**{**DILOCO, "method.outer_rate": 1.0, "method.momentum": 0.0}))
    assert torch.equal(*together)
    apart = weights(small(**{"method": "noloco", "method.every": 4, "method.group": 1}))
    assert not torch.allclose(*apart)


def test_a_pair_that_is_everybody_follows_the_mean():
    # Two replicas always meet, so with a whole pull they hold the mean of both, like DiLoCo's.
    pair = {"method.every": 4, "method.outer_rate": 1.0, "method.momentum": 0.0}
    ours = weights(small(**{"method": "noloco", "method.pull": 1.0, **pair}))
    mean = weights(small(**{"method": "diloco", **pair}))
    assert torch.allclose(ours[0], mean[0], atol=1e-6)
    assert torch.allclose(ours[1], mean[1], atol=1e-6)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_partners_are_each_others_and_change(ranks):
    seen = set()
    for round in range(20):
        found = [partner(Place(rank, ranks, 5), round) for rank in range(ranks)]
        assert found.count(-1) == ranks % 2
        assert all(found[other] == rank for rank, other in enumerate(found) if other >= 0)
        seen.add(tuple(found))
    assert len(seen) > 1 or ranks == 2


def test_before_the_variance_is_frozen_one_bit_adam_is_adam():
    adam = weights(small(**{"method": "synchronous", "method.codec": "float16"}))
    ours = weights(small(**{"method": "one_bit_adam", "method.exact": 12}))
    assert torch.equal(ours[0], adam[0])
    compressed = weights(small(**{"method": "one_bit_adam", "method.exact": 6}))
    assert torch.equal(*compressed)
    assert not torch.equal(compressed[0], adam[0])


def test_unpacked_momentum_is_adam_with_a_frozen_variance():
    # With numbers as they are nothing is lost, so there is nothing to compensate.
    job = {"method": "one_bit_adam", "method.exact": 6, "method.codec": "float32"}
    for each in replicas_of(small(**job)):
        kept = each.loop.kept
        assert not kept.worker_P.any() and not kept.server_S.any()
    lost = replicas_of(small(**{**job, "method.codec": "one_bit"}))[0].loop.kept
    assert lost.worker_P.any() and lost.server_S.any()


@pytest.mark.parametrize("method", METHODS)
def test_replicas_count_the_bytes_that_the_log_shows(method):
    often = {} if method in ("synchronous", "one_bit_adam", "robust") else {"method.every": 4}
    config = small(**{"replicas": 3, "method": method, **often})
    log = log_of(config)
    counted = [each.replica.sent for each in replicas_of(config)]
    assert sum(move.bytes for move in log.of(Move)) == sum(counted) > 0
    assert sum(metrics.sent_by_step(log).values()) == sum(counted)


def test_less_bandwidth_is_needed_the_more_is_hidden_and_never_less_than_the_bytes():
    step, latency = 1.0, 0.01
    traffics = [Traffic(1e9, 10, hidden, 2, beside) for hidden, beside in ((5, 0), (0, 0))]
    hidden, waited = (needed_bandwidth(each, step, latency, 0.9) for each in traffics)
    assert hidden < waited
    assert waited == pytest.approx(1e9 / (10 * step / 0.9 - 10 * step - 2 * latency), rel=1e-6)
    crowded = Traffic(1e9, 10, 100, 2, beside=4e9)
    assert needed_bandwidth(crowded, step, latency, 0.99999) == pytest.approx(5e9 / 10, rel=1e-3)
    assert needed_bandwidth(traffics[1], step, 10.0, 0.9) == float("inf")


def test_a_delay_as_long_as_the_round_is_refused():
    with pytest.raises(BadInput, match="delay 4 is not below every 4"):
        log_of(small(**{"method.every": 4, "method.delay": 4}))


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
def test_fragments_wait_as_long_as_asked_on_both_clocks(delay):
    config = small(**{"method.every": 6, "method.fragments": 3, "method.delay": delay})
    for executor in ("in_process", "described"):
        found = metrics.delays(log_of(update(config, {"executor": executor})))
        assert found
        assert all(after == min(delay, left) for after, left in found)
