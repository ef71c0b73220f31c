"""A run's charts as Bokeh figures, from a run, its log, its file, or an open study."""

import pytest
from bokeh.plotting import figure as bokeh_figure

import workbench
from engine.core.errors import BadInput
from engine.core.file import save
from engine.core.run import Run
from tests.workbench.toy import TOY, Ticks, tick
from workbench.notebook.open_study import OpenStudy
from workbench.session import study_session


def points(made):
    return made.renderers[0].data_source.data["y"].tolist()


def test_a_run_its_log_and_its_file_give_the_same_figure(tmp_path):
    run = Run.start(tick, Ticks(count=4)).wait(300)
    path = save(run.log, tmp_path / "a.run")
    made = [workbench.figure(of, "levels", width=400) for of in (run, run.log, path, str(path))]
    assert all(isinstance(one, bokeh_figure) and one.width == 400 for one in made)
    assert [points(one)[:4] for one in made] == [[0, 1, 2, 3]] * 4


def test_an_open_study_gives_figures_of_its_newest_run():
    opened = OpenStudy(TOY, study_session(TOY, TOY.config), live=False, height=400)
    assert points(opened.figure("levels"))[:5] == [0, 1, 2, 3, 4]
    assert points(opened.turn(count=3).figure("levels", dark=True))[:3] == [0, 1, 2]
    with pytest.raises(BadInput, match="'schedules'.*curves"):
        opened.figure("schedules")
