"""Gradients of several replicas in one pass are those of each alone."""

import pytest
import torch

from engine.training.low_communication.replica import Gradient, Learning, Place, Replica, gradients
from engine.training.low_communication.text import shipped_text

LEARNING = Learning(hidden=16, layers=1, context=32, rows=3)


def replicas(count: int, learning: Learning = LEARNING) -> list[Replica]:
    """Replicas whose weights have moved apart."""
    text = shipped_text()
    made = [Replica(learning, Place(rank, count, 5), text) for rank in range(count)]
    for rank, replica in enumerate(made):
        noise = torch.Generator().manual_seed(rank)
        replica.weights_P += 0.02 * torch.randn(replica.weights_P.shape, generator=noise)
    return made


def asked(made: list[Replica], step: int) -> list[Gradient]:
    return [next(replica.computed(step)) for replica in made]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("clip", [1e3, 0.1])
def test_together_as_alone(count, clip):
    made = replicas(count, LEARNING.model_copy(update={"clip": clip}))
    for replica in made:
        replica.gradient_P.fill_(torch.nan)
    losses = gradients(asked(made, 7))
    for replica, loss in zip(made, losses, strict=True):
        found_P = replica.gradient_P
        assert loss == pytest.approx(replica._gradient(7), abs=1e-6)
        torch.testing.assert_close(found_P, replica.gradient_P, rtol=1e-5, atol=1e-7)
    assert not count > 1 or not torch.equal(made[0].gradient_P, made[1].gradient_P)


def test_replicas_may_stand_at_different_steps():
    made = replicas(2)
    steps = [next(made[0].computed(3)), next(made[1].computed(4))]
    losses = gradients(steps)
    assert losses == pytest.approx([made[0]._gradient(3), made[1]._gradient(4)], abs=1e-6)
