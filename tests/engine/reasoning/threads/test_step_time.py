"""The measurement beside plain requests runs both loops; what it finds is told by the study."""

from engine.core.config import update
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.step_time import step_times


def test_both_loops_are_timed_turn_by_turn():
    config = update(ReasoningConfig(), {"workers": 2, "layout": "contiguous"})
    ours, theirs = step_times(config, 2, 2)
    assert len(ours) == len(theirs) == 2
    assert all(0 < seconds < 60 for seconds in [*ours, *theirs])
