"""A prediction's HTML: every figure with its band, every part in the bar, text escaped."""

from dataclasses import replace

from engine.core.config import update
from engine.training.step_time.described import TrainingRun
from workbench.predictions.as_html import told
from workbench.predictions.training import predict


def test_figures_parts_and_memory_are_shown_and_escaped():
    run = update(TrainingRun(), {"cluster.devices": 16, "split.pipeline": 2, "recipe.batch": 16})
    found = predict(run)
    page = told(found, dark=False)
    for name in (*found.figures, *(name for name, each in found.parts.items() if each > 0)):
        assert f"{name}</th>" in page
    assert page.count('class="band"') == len(found.figures) and "times as fast" in page
    assert "<b>x" not in told(replace(found, run="<b>x"), dark=True)
