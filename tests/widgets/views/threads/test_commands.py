"""A person's command on its way from the drawing to the live run."""

from engine.core.log import Log
from engine.core.run import Live, Run
from tests.widgets.views.threads.made import family
from widgets.canvas.drawing import CanvasDrawing
from widgets.stage.stage import Stage


def heard(drawing: CanvasDrawing, **command) -> None:
    """As the browser says it: twice the same command differs in its turn."""
    drawing._heard("command", command)


def test_a_command_reaches_the_run_that_is_shown():
    log = Log(list(family(commands=["fork"]))[:-1])
    run = Run(log, None, Live(log))
    stage = Stage(["threads"])
    stage.open(run)
    heard(stage.feeds[0].drawing, fork="main.0", turn=1)
    heard(stage.feeds[0].drawing, say=["main", "wait"], turn=2)
    assert list(run.live.inbox) == [{"fork": "main.0"}, {"say": ["main", "wait"]}]


def test_beside_one_another_each_run_hears_its_own_commands_and_one_that_is_over_none():
    live, over = Log(list(family())[:-1]), family()
    runs = [Run(live, None, Live(live)), Run(over, None, Live(over))]
    stage = Stage(["threads"], tracks=2)
    for track, run in enumerate(runs):
        stage.open(run, track)
    for feed in stage.feeds:
        heard(feed.drawing, kill="main.1", turn=1)
    assert [list(run.live.inbox) for run in runs] == [[{"kill": "main.1"}], []]


def test_no_command_is_no_command():
    said: list[dict] = []
    drawing = CanvasDrawing("threads")
    drawing.on_command(said.append)
    drawing._heard("command", {})
    assert said == []
