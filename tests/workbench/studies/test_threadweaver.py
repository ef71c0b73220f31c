"""ThreadWeaver's map over the parts of a problem: what the model was not taught is not measured."""

import math

import pytest

from engine.core.config import update
from workbench.studies.reasoning._threadweaver import as_written, with_parts
from workbench.studies.reasoning.threadweaver import STUDY


@pytest.mark.parametrize(("parts", "low", "high"), [(1, 0.7, 1.0), (2, 1.1, 1.3), (4, 1.5, 1.8)])
def test_one_part_leaves_nothing_to_do_side_by_side(parts: int, low: float, high: float) -> None:
    assert low < as_written(update(STUDY.config, {"task.parts": parts})) < high


def test_lengths_of_answers_that_were_not_learnt_are_told_in_words() -> None:
    found = with_parts(STUDY.config, 1, STUDY.run_config(), True)
    assert found.figure is not None
    assert math.isnan(found.figure.value) and not found.holds
    assert found.measured.startswith("not learnt")
