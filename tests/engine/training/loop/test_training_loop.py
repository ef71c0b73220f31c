"""The training loop ends where nothing is learnt any more."""

import pytest

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.training.loop.learner import Learner
from engine.training.loop.settings import Training
from engine.training.loop.training_loop import training_loop


class ComesApart(Learner):
    """At step 3, by its loss or its gradient."""

    def __init__(self, loss: float, norm: float) -> None:
        self.told, self.place, self.facts = (loss, norm), None, {}

    def gradients(self, step):
        return (self.told[0] if step == 3 else 1.0), 1

    def update(self, rate, asked):
        self.steps = getattr(self, "steps", -1) + 1
        return (self.told[1] if self.steps == 3 else 1.0), asked

    def enter(self, phase, step):
        pass

    def wait(self):
        pass

    def resume(self, facts):
        raise AssertionError("no place")

    def save(self, step, facts):
        raise AssertionError("no place")

    def whole(self):
        raise AssertionError("ended before")


@pytest.mark.parametrize("told", [(float("nan"), 1.0), (1.0, float("inf"))])
def test_a_loss_or_gradient_that_is_not_finite_ends_it_in_one_line(told):
    recipe = Training(steps=9, warmup=1, decay=1)
    with pytest.raises(BadInput, match="^step 3: loss .*nothing of this was saved; take a lower"):
        training_loop(
            ComesApart(*told), recipe, lambda *_: {}, emit=lambda event: None, clock=WallClock()
        )
