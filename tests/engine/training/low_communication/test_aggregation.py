"""Aggregators keep what each promises under six attacks, and not where more are forged."""

import pytest
import torch

from engine.core.config import kinds
from engine.core.errors import BadInput
from engine.training.low_communication.aggregator import Aggregator
from engine.training.low_communication.attack import ATTACKS, forge
from tests.engine.training.low_communication.small import replicas_of, small

SIZE = 17
SLACK = 1 + 1e-5  # float32, and Weiszfeld's steps
ROBUST = sorted(set(kinds(Aggregator)) - {"mean"})


def honest_vectors(count, draw):
    """Around a mean that is not zero, as gradients of one model; sometimes two alike."""
    generator = torch.Generator().manual_seed(draw)
    wide = 10.0 ** (draw % 4 - 2)
    found = torch.randn(SIZE, generator=generator) + wide * torch.randn(
        count, SIZE, generator=generator
    )
    if draw % 5 == 0 and count > 1:
        found[1] = found[0]
    return found


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("kind", ROBUST)
def test_it_lies_where_its_promise_says(kind, attack, full):
    aggregator = kinds(Aggregator)[kind]()
    for draw in range(1000 if full else 12):
        count = 3 + draw % 13
        for forged in range(aggregator.most(count) + 1):
            honest_HP = honest_vectors(count - forged, draw)
            scale = 10.0 ** (draw % 7)
            lies = [forge(attack, honest_HP, scale, draw * 64 + k) for k in range(forged)]
            place = torch.randperm(count, generator=torch.Generator().manual_seed(draw))
            found_P = aggregator.combine(torch.stack([*honest_HP, *lies])[place], forged)
            off = float((found_P - honest_HP.mean(0)).norm())
            assert off <= SLACK * aggregator.reach(honest_HP, forged) + 1e-5
            if kind in ("median", "trimmed_mean"):
                low_P, high_P = honest_HP.amin(0) - 1e-5, honest_HP.amax(0) + 1e-5
                assert ((low_P <= found_P) & (found_P <= high_P)).all()


@pytest.mark.parametrize("kind", sorted(kinds(Aggregator)))
def test_more_than_it_bears_take_it_anywhere(kind):
    aggregator = kinds(Aggregator)[kind]()
    for count in range(4, 16):
        # Half of them on one point are each other's nearest; elsewhere more than half decide.
        forged = {"mean": 1, "krum": count // 2}.get(kind, count // 2 + 1)
        assert forged > aggregator.most(count)
        honest_HP = honest_vectors(count - forged, 5 * count + 1)
        for far in (1e3, 1e6):
            lie_P = honest_HP.mean(0) + far
            found_P = aggregator.combine(torch.stack([*honest_HP, *[lie_P] * forged]), forged)
            assert float((found_P - honest_HP.mean(0)).norm()) > far / 4


def test_training_goes_on_beside_an_attacker_and_the_mean_does_not():
    def loss(aggregator, attackers, attack="sign_flip"):
        job = {"method": "robust", "replicas": 5, "method.attackers": attackers,
               "method.aggregator": aggregator, "method.attack": attack}  # fmt: skip
        trained = replicas_of(small(**job))
        first, *rest = (each.replica.weights_P.nan_to_num(7.0) for each in trained)
        assert all(torch.equal(first, other) for other in rest)
        return trained[0].samples[-1].held_out

    alone, none = loss("mean", 0), small(method="robust")
    undone = loss("mean", 1)
    assert undone > alone + 0.5, "one forged gradient undoes the mean"
    assert not loss("mean", 1, "not_a_number") < alone
    for kind in ROBUST:
        assert loss(kind, 1) < undone - 0.2
    with pytest.raises(BadInput, match="leave one honest"):
        replicas_of(small(**{"method": "robust", "method.attackers": none.replicas}))
