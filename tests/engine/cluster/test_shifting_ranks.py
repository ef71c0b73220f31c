"""Real ranks that shift: groups of them, and what is refused."""

import numpy as np
import pytest

from engine.cluster.shifting_ranks import Step, alone, on_ranks
from engine.core.errors import BadInput

PROMPTS = [np.random.default_rng(n).integers(2, 4000, 5 + 6 * n).tolist() for n in range(2)]
STEPS = [Step([0], True), Step([0, 1], False), Step([0, 1], True), Step([1], False)]


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_four_ranks_in_groups_say_what_one_process_says(full, groups):
    if not full:
        pytest.skip("two ranks are the study's; four take seconds (--full)")
    truth = alone("stdlib-5m", PROMPTS, 3)
    for each in on_ranks("stdlib-5m", PROMPTS, STEPS, 4, groups):
        assert each.tokens == truth.tokens
        assert each.apart(truth) < 1e-5


def test_what_does_not_divide_is_refused():
    with pytest.raises(BadInput, match="cannot be dealt evenly to 4"):
        on_ranks("stdlib-draft-1m", PROMPTS, STEPS, 4)
    with pytest.raises(BadInput, match="do not divide 2 ranks"):
        on_ranks("stdlib-draft-1m", PROMPTS, STEPS, 2, 3)
